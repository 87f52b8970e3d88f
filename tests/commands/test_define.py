"""Creating over a source that somebody writes to."""

from __future__ import annotations

from pgtrickle.commands import define
from tests.fixtures.databases import APP

QUERY = "select id from orders"


def test_a_source_that_stays_locked_lets_the_stream_table_wait_for_its_triggers(database, source, connect):
    source("orders(id int primary key)")
    connect(APP).execute("insert into orders values (1)")
    (notice,) = define.create(database.dsn(APP), "copy", QUERY, {})
    assert notice.startswith("stream table public.copy is waiting for triggers on public.orders")


def test_a_source_that_is_free_gives_no_notice(database, source):
    source("orders(id int primary key)")
    assert define.create(database.dsn(APP), "copy", QUERY, {}) == []
