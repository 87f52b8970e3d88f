"""Statements about stream tables, written like SQL: read here, run through the commands of the CLI."""
