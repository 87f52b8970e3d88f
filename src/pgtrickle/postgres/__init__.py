"""A thin layer over psycopg: connections, composed SQL, and descriptions of database objects."""
