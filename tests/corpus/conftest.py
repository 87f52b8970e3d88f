"""A database with the tables of the corpus for each test, cloned from one that is filled once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import psycopg
import pytest
from psycopg import sql

from pgtrickle.embedded import SUPERUSER, Server
from tests.corpus.asked import ROWS, TABLES
from tests.fixtures.databases import APP, TRICKLE, Database, FilledTemplates, Templates

FILLED: Final = "corpus_template"


def fill(database: Database) -> None:
    """Create the tables and their rows; functions are in the hands of the role that will call them."""
    with database.connect(APP, autocommit=True) as app:
        app.execute(TABLES)
        app.execute(f"grant select, trigger on all tables in schema public to {TRICKLE}")
        app.execute(ROWS)
        with suppress(psycopg.errors.FeatureNotSupported):
            # a server may have been built without XML
            app.execute("update papers set doc = body::xml")
    with database.connect(SUPERUSER, autocommit=True) as admin:
        own = "select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace"
        for (routine,) in admin.execute(own).fetchall():
            owner = sql.Identifier(TRICKLE)
            admin.execute(sql.SQL("alter routine {} owner to {}").format(sql.SQL(routine), owner))


@pytest.fixture(scope="session")
def filled_templates(templates: Templates) -> FilledTemplates:
    return FilledTemplates(templates, FILLED, fill)


@pytest.fixture
def database(
    server: Server, filled_templates: FilledTemplates, database_names: Iterator[str]
) -> Iterator[Database]:
    """This test's own database, with the product installed and the tables in it."""
    with filled_templates.cloned(server, next(database_names)) as database:
        yield database
