"""The thin floor over psycopg: connecting, composing SQL, describing what is in the database."""
