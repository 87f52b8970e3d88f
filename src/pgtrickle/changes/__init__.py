"""Reads windows of changes, and the rows they affect, in one snapshot."""
