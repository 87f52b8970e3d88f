"""A corpus of queries in the manner of PostgreSQL's regression tests: every expression node, every clause."""
