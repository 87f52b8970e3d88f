"""The demonstration: stream tables that follow a small shop while customers keep buying."""
