"""The tests of WAL capture run on a server that allows it, with sources that have full replica identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import psycopg
import pytest

from pgtrickle.embedded import Server
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import Templates, allow_wal
from tests.fixtures.servers import Servers
from tests.fixtures.sources import Source, SourceTable
from tests.fixtures.stream_tables import StreamTable
from tests.fixtures.wal import hand_over

WalTable = Callable[..., StreamTable]


@pytest.fixture
def server(wal_servers: Servers, pg_version: int, templates: Templates) -> Server:
    server = wal_servers[pg_version]
    templates.ensure(server)
    allow_wal(server)
    return server


@pytest.fixture
def full_source(source: Source, app: psycopg.Connection) -> Source:
    """Creates a source whose old rows are in the log."""

    def create(declaration: str, rows: Iterable[Sequence[object]] = ()) -> SourceTable:
        table = source(declaration, rows)
        app.execute(f"alter table {table.name} replica identity full")
        return table

    return create


@pytest.fixture
def wal_table(app: psycopg.Connection, engine: Engine) -> WalTable:
    """Creates a stream table whose sources are captured from the log, and loads it."""
    made = 0

    def create(query: str, *, cdc_mode: str = "wal", refresh_mode: str = "DIFFERENTIAL") -> StreamTable:
        nonlocal made
        made += 1
        table = StreamTable(f"stream_{made}", query, engine, app)
        app.execute(
            "select pgtrickle.create_stream_table(%s, %s, schedule => null, refresh_mode => %s,"
            " cdc_mode => %s)",
            (table.name, query, refresh_mode, cdc_mode),
        )
        assert not any(hand_over(engine))
        table.refresh()
        table.equals_its_query()
        return table

    return create
