"""A demonstration: a small shop whose stream tables follow while customers keep buying."""
