"""Carries a decision out: read, compute, apply."""
