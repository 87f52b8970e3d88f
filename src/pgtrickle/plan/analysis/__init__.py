"""From canonical SQL to operators: names resolved, conditions placed, edge expressions pushed."""
