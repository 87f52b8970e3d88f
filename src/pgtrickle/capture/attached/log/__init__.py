"""Follows tables of another database by decoding its log, without installing anything there."""
