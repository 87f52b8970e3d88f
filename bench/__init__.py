"""Measures pgtrickle: `make bench` prints a table of figures and writes all samples as JSON."""
