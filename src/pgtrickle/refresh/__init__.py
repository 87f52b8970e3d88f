"""Refreshes stream tables: one story, from the claim to the commit."""
