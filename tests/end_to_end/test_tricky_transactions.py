"""Writers that overlap, roll back, stay open and commit out of order; engines that meet."""

from __future__ import annotations

import threading

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import APP

QUERIES = (
    "select id, g, v from items",
    "select g, count(*) as n, sum(v) as s, max(v) as top from items group by g",
    "select a.id, b.id as b from items a join items b on a.g = b.g",
)


@pytest.fixture
def items(source):
    return source("items(id int primary key, g int, v int)", rows=[(n, n % 3, n * 10) for n in range(1, 7)])


@pytest.fixture
def tables(items, followed):
    return followed(*QUERIES)


@pytest.mark.light
def test_writers_that_commit_in_another_order_than_they_began_lose_nothing(tables, connect):
    first, second, third = connect(APP), connect(APP), connect(APP)
    first.execute("update items set v = 1 where id = 1")
    second.execute("insert into items values (20, 1, 2)")
    third.execute("delete from items where id = 3")
    third.commit()
    tables.follow()
    first.execute("update items set g = 0 where id = 1")
    second.commit()
    tables.follow()
    third.execute("insert into items values (3, 9, 9)")
    first.commit()
    tables.follow()
    third.commit()
    tables.follow()
    tables.stand_still()


def test_a_transaction_open_across_many_refreshes_is_seen_once_when_it_ends(tables, connect):
    slow, idle = connect(APP), connect(APP)
    idle.execute("select pg_current_xact_id()")
    slow.execute("update items set v = v + 100 where id <= 2")
    for number in range(3):
        tables.after(
            f"insert into items values ({30 + number}, 2, {number})", "update items set g = 1 where id = 6"
        )
        slow.execute(f"insert into items values ({40 + number}, 2, {number})")
    tables.stand_still()
    slow.commit()
    tables.follow()
    tables.stand_still()
    idle.commit()
    tables.stand_still()


def test_what_is_rolled_back_leaves_no_trace(tables, connect):
    writer = connect(APP)
    writer.execute("delete from items")
    writer.rollback()
    tables.stand_still()
    writer.execute("insert into items values (50, 1, 1)")
    writer.execute("savepoint one")
    writer.execute("delete from items where id < 4")
    writer.execute("savepoint two")
    writer.execute("update items set v = 0")
    writer.execute("rollback to two")
    writer.execute("insert into items values (51, 1, 1)")
    writer.execute("rollback to one")
    writer.execute("savepoint three")
    writer.execute("insert into items values (52, 2, 2)")
    writer.execute("release three")
    tables.stand_still()
    writer.commit()
    tables.follow()


@pytest.mark.light
def test_a_two_phase_commit_is_followed_when_it_is_finished(tables, connect, app):
    for name, statement in (
        ("kept", "delete from items where id = 1"),
        ("dropped", "delete from items where id = 2"),
    ):
        writer = connect(APP)
        writer.execute(statement)
        writer.execute(f"prepare transaction '{name}'")
    tables.after("insert into items values (60, 1, 1)")
    app.execute("rollback prepared 'dropped'")
    tables.stand_still()
    app.execute("commit prepared 'kept'")
    tables.follow()
    tables.stand_still()


def test_a_refresh_reads_one_snapshot_while_writers_go_on(tables, connect, items):
    """Rows that are committed during a refresh belong to the next one, never to a part of this one."""
    stop, committed = threading.Event(), threading.Event()
    writer = connect(APP)

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            writer.execute("update items set g = (g + 1) %% 4, v = v + 1 where id = %s", (number % 6 + 1,))
            writer.execute("insert into items values (%s, %s, 1)", (1000 + number, number % 3))
            writer.execute("delete from items where id = %s", (1000 + number - 2,))
            writer.commit()
            committed.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(4):
            for table in tables.tables:
                committed.clear()
                assert committed.wait(90), "the writer does not write"
                assert table.refresh().action is Action.DIFFERENTIAL
    finally:
        stop.set()
        thread.join()
    tables.follow()


def test_a_first_load_loses_no_change_of_a_writer_under_way(items, stream_table, connect):
    writer = connect(APP)
    writer.execute("select pg_current_xact_id()")
    tables = [stream_table(query, loads=False) for query in QUERIES]
    writer.execute("update items set v = v + 1, g = 1 where id = 1")
    for table in tables:
        table.refresh()
        table.equals_its_query()
    writer.commit()
    for table in tables:
        table.refresh()
        table.equals_its_query()


@pytest.mark.light
def test_two_engines_on_one_database_follow_each_change_once(tables, dsn, spark, items):
    other = Engine(dsn, lambda: spark)
    try:
        for number in range(6):
            items.change(
                f"insert into items values ({70 + number}, 1, 1)", "update items set v = v + 1 where g = 1"
            )
            for table in tables.tables:
                with other.connection() as connection:
                    table_id = find(connection, table.name).id
                if number % 2:
                    refresh(other, table_id, initiated_by="test", waits=True)
                else:
                    table.refresh()
                table.equals_its_query()
        _at_once(tables.tables[1], other, items)
    finally:
        other._spark = None
        other.close()


def _at_once(table, other, items):
    """Both ask for the same table at the same moment: one of them finds nothing left, or it busy."""
    with other.connection() as connection:
        table_id = find(connection, table.name).id
    for number in range(3):
        items.change(f"insert into items values ({90 + number}, 1, 1)")
        outcomes: list[Action] = []

        def ask(engine, outcomes=outcomes):
            try:
                outcomes.append(refresh(engine, table_id, initiated_by="test", waits=False).action)
            except Busy:
                outcomes.append(Action.SKIP)

        threads = [threading.Thread(target=ask, args=(engine,)) for engine in (table.engine, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count(Action.DIFFERENTIAL) == 1
        table.equals_its_query()


def test_replicated_writes_are_followed(tables, admin):
    admin.execute("set session_replication_role = replica")
    admin.execute("insert into items values (80, 1, 1)")
    admin.execute("update items set g = 2 where id = 80")
    admin.execute("delete from items where id = 1")
    tables.follow()
