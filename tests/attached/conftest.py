"""A database `crm` beside the one with the stream tables, attached to it under that name."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from pgtrickle.catalog.tables import find
from pgtrickle.embedded import Server
from pgtrickle.model.stream_table import RefreshOutcome
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.bags import difference
from tests.fixtures.databases import (
    APP,
    TEMPLATE,
    TRICKLE,
    Database,
    Templates,
    create_database,
    drop_database,
)

ALIAS = "crm"


@dataclass(slots=True)
class Attached:
    """The other database, seen from this one."""

    database: Database
    app: psycopg.Connection
    local: psycopg.Connection
    """As the owner of pgtrickle, each statement committed at once."""
    engine: Engine

    def declare(self, table: str, *, to: str = APP) -> str:
        """Declare a table, and let the application read it."""
        row = self.local.execute(
            "select pgtrickle.declare_source(%s, 'public', %s)", (ALIAS, table)
        ).fetchone()
        assert row is not None
        self.follow()
        self.local.execute(f"grant select on {row[0]} to {to}")
        return str(row[0])

    def follow(self, *, compares: bool = False) -> None:
        (database,) = self.engine.attached.list()
        self.engine.attached.follow(database, compares=compares)

    def table(self, definition: str, name: str) -> str:
        """Create a table there, and declare it."""
        self.app.execute(f"create table {name} ({definition})")
        self.app.execute(f"grant select, trigger on {name} to {TRICKLE}")
        return self.declare(name)

    def check(self, name: str, query: str, *tables: str) -> None:
        """Compare a stream table with PostgreSQL's answer over the rows that the tables have there now."""
        with self.local.transaction():
            for table in tables:
                stand_in = sql.Identifier("pgtrickle_attached", f"{ALIAS}.public.{table}")
                self.local.execute(
                    sql.SQL("create temporary table {} on commit drop as table {} with no data").format(
                        sql.Identifier(f"real_{table}"), stand_in
                    )
                )
                rows = io.BytesIO()
                with self.app.cursor().copy(f"copy (select * from {table}) to stdout") as out:
                    for block in out:
                        rows.write(block)
                with self.local.cursor().copy(f"copy real_{table} from stdin") as into:
                    into.write(rows.getvalue())
                query = query.replace(f"{ALIAS}.public.{table}", f"pg_temp.real_{table}")
            assert difference(self.local, f"select * from {name}", query) == []


def refresh_by_name(engine: Engine, name: str, initiated_by: str = "test") -> RefreshOutcome:
    with engine.connection() as connection:
        table = find(connection, f"public.{name}")
    return refresh(engine, table.id, initiated_by=initiated_by, waits=True)


@pytest.fixture
def crm(server: Server, templates: Templates, database_names: Iterator[str]) -> Iterator[Database]:
    templates.ensure(server)
    database = create_database(server, next(database_names), TEMPLATE)
    yield database
    drop_database(database)


@pytest.fixture
def attached(crm: Database, database: Database, engine: Engine) -> Iterator[Attached]:
    engine.attached.resolve = {"customers of ours": crm.dsn()}.get
    with (
        closing(crm.connect(APP, autocommit=True)) as app,
        closing(database.connect(TRICKLE, autocommit=True)) as local,
    ):
        local.execute("select pgtrickle.attach_database(%s, 'customers of ours')", (ALIAS,))
        yield Attached(crm, app, local, engine)
        engine.attached.close()
