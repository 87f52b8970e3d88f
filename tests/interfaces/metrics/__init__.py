"""Metrics of a sidecar, and what is made of them."""
