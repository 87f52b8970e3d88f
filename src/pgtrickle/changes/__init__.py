"""Choosing a window of changes and reading it, with the rows it touches, under one snapshot."""
