"""The proof on TPC-H: its data, its 22 queries, and changes to all of its eight tables."""
