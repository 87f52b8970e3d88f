"""TPC-H: what its 22 queries cost to follow, against computing them anew."""
