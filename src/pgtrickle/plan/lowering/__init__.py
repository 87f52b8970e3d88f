"""From operators to SQL: Spark's for the middle, PostgreSQL's for the edges."""
