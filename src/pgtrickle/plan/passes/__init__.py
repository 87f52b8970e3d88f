"""The passes over a tree of operators: one pass, one file. Each asks the rules of the operators."""
