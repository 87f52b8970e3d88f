"""The window of a source: what a frontier has not seen, counted and read once for several readers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pgtrickle.changes.memory import Memory
from pgtrickle.changes.read import read_one
from pgtrickle.changes.relations import Ends
from pgtrickle.changes.shared_windows import MAX_COLUMNS, _portions, can_be_shared, read_together
from pgtrickle.changes.source_window import SourceWindow, count_windows
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.introspect import describe_sources
from tests.changes.reads import changes_read, rows_of, table_source
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def frontier(connection) -> Frontier:
    return Frontier.parse(connection.execute("select pg_current_snapshot()::text").fetchone()[0])


@pytest.fixture
def orders(source, app, connection):
    """A captured source, as PostgreSQL describes it."""
    source("orders(id int primary key, region text, amount numeric(10,2))", rows=[(1, "north", 1)])
    app.execute("select pgtrickle.create_stream_table('followed', 'select * from orders')")
    relation = RelationId(connection.execute("select 'orders'::regclass::oid::bigint").fetchone()[0])
    described = describe_sources(connection, [relation])[relation]
    connection.commit()
    return described


def since(start: Frontier) -> Ends:
    return Ends(lambda source: start, None, NOW)


def test_a_window_counts_the_change_rows_that_its_frontier_has_not_seen(orders, app, connection, connect):
    start = frontier(connection)
    connection.commit()
    app.execute("insert into orders values (2, 'south', 2), (3, null, null)")
    app.execute("update orders set amount = 5 where id = 2")
    under_way = connect(APP)
    under_way.execute("delete from orders where id = 1")
    middle = frontier(connection)
    counted = count_windows(connection, [(orders.relation, start), (orders.relation, middle)])
    assert counted == {(orders.relation, start): SourceWindow(orders.relation, 4, is_truncated=False)}
    connection.commit()
    under_way.commit()
    counted = count_windows(connection, [(orders.relation, middle)])
    # it had begun before the frontier, and committed after it
    assert counted == {(orders.relation, middle): SourceWindow(orders.relation, 1, is_truncated=False)}


def test_a_truncated_window_says_so(orders, app, connection):
    start = frontier(connection)
    connection.commit()
    app.execute("truncate orders")
    counted = count_windows(connection, [(orders.relation, start)])
    assert counted[orders.relation, start].is_truncated


def test_no_sources_have_no_windows(connection):
    assert count_windows(connection, []) == {}


def test_readers_of_one_window_get_together_what_each_gets_alone(orders, app, connection):
    start = frontier(connection)
    connection.commit()
    app.execute("insert into orders values (2, 'south', 2), (3, null, null), (4, 'north', 7)")
    app.execute("update orders set amount = amount + 1 where region = 'north'")
    app.execute("insert into orders values (5, 'gone', 1); delete from orders where id = 5")
    reads = [
        changes_read(orders, "id", "region", "amount"),
        changes_read(orders, "region", condition="t.amount > 2"),
        changes_read(orders, "amount", condition="t.region is null"),
    ]
    assert all(map(can_be_shared, reads))
    memory = Memory(lambda: 1 << 30)
    with memory.holding() as holding:
        together = read_together(connection, [(read, since(start)) for read in reads], holding)
        alone = [read_one(read, connection, since(start), None, holding) for read in reads]
    assert [rows_of(table) for table in together] == [rows_of(table) for table in alone]
    assert rows_of(alone[0]) == [
        (1, "north", "1", -1),
        (1, "north", "2", 1),
        (2, "south", "2", 1),
        (3, None, None, 1),
        (4, "north", "8", 1),
    ]


def test_readers_are_split_where_their_columns_would_be_too_many():
    wide = table_source(1, **{f"c{number}": "integer" for number in range(MAX_COLUMNS // 2)})
    read = changes_read(wide, *(column.name for column in wide.columns))
    reader = (read, since(Frontier(1, 1)))
    assert [len(portion) for portion in _portions([reader] * 3)] == [1, 1, 1]
    narrow = (changes_read(wide, "c0"), since(Frontier(1, 1)))
    assert [len(portion) for portion in _portions([narrow, reader, narrow, reader])] == [3, 1]
