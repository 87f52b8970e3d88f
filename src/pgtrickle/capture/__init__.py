"""Captures every change of a source: buffers, triggers, and their rotation."""
