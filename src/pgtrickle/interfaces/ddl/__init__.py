"""Statements about stream tables, written like SQL: parsed here and executed by the commands."""
