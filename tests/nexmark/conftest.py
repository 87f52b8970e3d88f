"""A database with the data of Nexmark for each test, cloned from one that is filled once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import psycopg
import pytest

from pgtrickle.embedded import Server
from tests.fixtures.databases import APP, TRICKLE, Database, FilledTemplates, Templates
from tests.nexmark.generating import Row, Site, side_inputs

EVENTS: Final = 600
SEED: Final = 1
FILLED: Final = "nexmark_template"
TABLES: Final = ("person", "auction", "bid", "side_input")


def _fill(database: Database) -> None:
    with database.connect(APP, autocommit=True) as app:
        app.execute((Path(__file__).parent / "schema.sql").read_text())
        app.execute(f"grant select, trigger on {', '.join(TABLES)} to {TRICKLE}")
        events = list(Site(Random(SEED)).events(EVENTS))
        for table in TABLES[:3]:
            _copy(app, table, [row for name, row in events if name == table])
        _copy(app, "side_input", side_inputs())


def _copy(app: psycopg.Connection, table: str, rows: list[Row]) -> None:
    with app.cursor() as cursor, cursor.copy(f"copy {table} from stdin") as copy:
        for row in rows:
            copy.write_row(row)


@pytest.fixture(scope="session")
def filled_templates(templates: Templates) -> FilledTemplates:
    return FilledTemplates(templates, FILLED, _fill)


@pytest.fixture
def database(
    server: Server, filled_templates: FilledTemplates, database_names: Iterator[str]
) -> Iterator[Database]:
    """This test's own database, with the product installed and the data in it."""
    with filled_templates.cloned(server, next(database_names)) as database:
        yield database


@pytest.fixture
def site() -> Site:
    """The site as it stands when the data is there: what it draws next is new."""
    site = Site(Random(SEED))
    for _ in site.events(EVENTS):
        pass
    return site
