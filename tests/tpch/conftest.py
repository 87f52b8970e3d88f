"""A database with the data of TPC-H for each test, cloned from one that is loaded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgtrickle.embedded import SUPERUSER, Server
from tests.fixtures.databases import APP, TRICKLE, Database, FilledTemplates, Templates
from tests.tpch.loading import TABLES, create_tables, fill_tables

SCALE = 0.01
LOADED = "tpch_template"


def _load(database: Database) -> None:
    with database.connect(APP, autocommit=True) as app:
        create_tables(app)
        app.execute(f"grant select, trigger on {', '.join(TABLES)} to {TRICKLE}")
        fill_tables(app, SCALE)
        # PostgreSQL's own answer to q20 looks up pairs of part and supplier
        app.execute("create index on lineitem (l_partkey, l_suppkey)")
    with database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute("vacuum analyze")


@pytest.fixture(scope="session")
def loaded_templates(templates: Templates) -> FilledTemplates:
    return FilledTemplates(templates, LOADED, _load)


@pytest.fixture
def database(
    server: Server, loaded_templates: FilledTemplates, database_names: Iterator[str]
) -> Iterator[Database]:
    """This test's own database, with the product installed and the data loaded."""
    with loaded_templates.cloned(server, next(database_names)) as database:
        yield database
