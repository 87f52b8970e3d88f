"""Stream tables for PostgreSQL: query results that follow their sources, computed on Spark."""

__version__ = "0.1.0"
