"""How a plan ends: what Spark returns, and how the stream table follows from it."""
