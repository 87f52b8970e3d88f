#!/bin/sh
# The image runs this once, before the tables are created.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
    --set password="$POSTGRES_PASSWORD" --file /pgtrickle/roles.sql
