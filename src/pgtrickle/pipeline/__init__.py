"""Runs delta programs on Spark: in one task for small windows, distributed for large ones."""
