"""Polls of the ground as the sidecar makes them, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import psycopg
import pytest

from pgtrickle.catalog.dependencies import poll_ground, settle
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.errors import RightLost, SourceChanged
from tests.fixtures.databases import Database

LOADED = """
update pgtrickle.pgt_stream_tables set status = 'ACTIVE', is_populated = true, needs_reinit = false,
    reinit_reason = null, frontier = pg_current_snapshot(), effective_refresh_mode = 'DIFFERENTIAL'
"""


@dataclass(frozen=True, slots=True)
class Ground:
    """Stream tables that nobody refreshes, and polls of what they rely on."""

    app: psycopg.Connection
    connection: psycopg.Connection

    def follow(self, query: str, name: str = "s") -> None:
        """Create a stream table, and take it for loaded."""
        self.app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))
        self.connection.execute(LOADED)
        assert self.poll() == {}

    def after(self, *statements: str, by: psycopg.Connection | None = None) -> str:
        """What one poll decides for `s` after these statements; it must decide something."""
        for statement in statements:
            (by or self.app).execute(statement)
        return self.poll().get("s", "nothing was decided")

    def poll(self) -> dict[str, str]:
        """What one poll decides: a reason to load anew, or an error, for each stream table concerned."""
        found = {}
        for table_id in poll_ground(self.connection, None)[1]:
            table = stream_table(self.connection, table_id)
            try:
                reason = settle(self.connection, table_id, waits=False)
            except (SourceChanged, RightLost) as error:
                found[table.name.name] = f"ERROR {error.message}"
            else:
                if reason is not None:
                    found[table.name.name] = reason
        # what was decided is decided once
        assert poll_ground(self.connection, None)[1] == ()
        return found

    def state(self, name: str = "s") -> tuple[object, ...]:
        """Whether it is to be loaded anew, why, and what stops it."""
        row = self.connection.execute(
            "select needs_reinit, reinit_reason, ground_error from pgtrickle.pgt_stream_tables"
            " where pgt_name = %s",
            (name,),
        ).fetchone()
        assert row is not None
        return row

    def drop(self, *relations: str) -> None:
        """Take the stream table and these relations away, for the next case."""
        self.app.execute("select pgtrickle.drop_stream_table('s')")
        for relation in relations:
            self.app.execute(f"drop table if exists {relation} cascade")


@pytest.fixture
def ground(app: psycopg.Connection, database: Database) -> Iterator[Ground]:
    app.execute("set client_min_messages = warning")
    with closing(database.connect(autocommit=True)) as connection:
        yield Ground(app, connection)


@pytest.fixture
def items(source):
    return source("items(id int primary key, v int, note text)", rows=[(1, 10, "a"), (2, 20, "b")])
