"""From canonical text to a delta program; knows neither a database nor Spark."""
