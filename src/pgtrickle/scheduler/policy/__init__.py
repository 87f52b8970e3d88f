"""Decisions of the scheduler, without I/O: what is due, when, in which order and together with what."""
