"""A database with the data of TPC-H for each test, cloned from one that is loaded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgtrickle.embedded import SUPERUSER, Server
from tests.fixtures.databases import (
    APP,
    TEMPLATE,
    TRICKLE,
    Database,
    Templates,
    create_database,
    drop_database,
)
from tests.tpch.loading import TABLES, create_tables, fill_tables

SCALE = 0.01
LOADED = "tpch_template"


class LoadedTemplates:
    """Knows on which servers of this run the data is loaded."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._ready: set[int] = set()

    def ensure(self, server: Server) -> None:
        self._templates.ensure(server)
        if server.port not in self._ready:
            _load(create_database(server, LOADED, TEMPLATE))
            self._ready.add(server.port)


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
def loaded_templates(templates: Templates) -> LoadedTemplates:
    return LoadedTemplates(templates)


@pytest.fixture
def database(
    server: Server, loaded_templates: LoadedTemplates, database_names: Iterator[str]
) -> Iterator[Database]:
    """This test's own database, with the product installed and the data loaded."""
    loaded_templates.ensure(server)
    database = create_database(server, next(database_names), LOADED)
    yield database
    drop_database(database)
