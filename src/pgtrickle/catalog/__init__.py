"""The catalog: schema and functions in the database, and typed queries over them."""
