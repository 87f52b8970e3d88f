"""Both paths on Spark give the same rows, untouched rows stay untouched, and readers are never blocked."""

from __future__ import annotations

import threading

import pytest

from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action
from pgtrickle.pipeline.distributed import run_distributed
from pgtrickle.refresh.execute import staging
from tests.fixtures.databases import APP

QUERIES = (
    "select k.name, count(*) as n, sum(i.n) as s, avg(i.n) as a, min(i.v) as low, max(i.at) as last"
    " from items i join kinds k on k.id = i.kind group by k.name",
    "select kind, string_agg(s, ',' order by id) as all, stddev(v) as d from items group by kind",
    "select k.name, t.n from kinds k"
    " join (select kind, count(*) as n from items group by kind) t on t.kind = k.id",
    "select a.v, a.day, b.id as b from parts a join parts b on a.v = b.v and a.day < b.day",
    "with recursive r(a, b) as (select kind, v from items union select r.a, i.v from r join items i on"
    " i.kind = r.b) select k.name, r.b from kinds k join r on r.a = k.id",
)

WINDOWS = (
    (
        "update items set kind = 3 - kind where id < 20",
        "delete from items where v = (select max(v) from items)",
        "insert into items select 200 + n, n % 4, n % 3, 'new', 0.25, null from generate_series(1, 9) n",
        "update parts set day = day + 10 where day < 3",
        "delete from kinds where id = 2",
    ),
    (
        "delete from items where id % 2 = 0",
        "insert into kinds values (2, 'two again')",
        "update items set s = null, n = n * 2, v = v - 1",
        "delete from parts where v = 1",
    ),
)


@pytest.fixture
def items(source, app):
    source("kinds(id int primary key, name text)", rows=[(0, "zero"), (1, "one"), (2, "two"), (3, "one")])
    source("parts(id int, day int, v int) partition by range (day)")
    app.execute("create table parts_1 partition of parts for values from (0) to (10)")
    app.execute("create table parts_2 partition of parts for values from (10) to (30)")
    app.execute("grant select, trigger on parts_1, parts_2 to trickle")
    app.execute("insert into parts select n, n % 20, n % 6 from generate_series(1, 40) n")
    items = source("items(id int primary key, kind int, v int, s text, n numeric(10,2), at timestamptz)")
    items.change(
        "insert into items select n, n % 4, n % 17, 's' || n % 5, n / 4.0,"
        " '2024-01-01'::timestamptz + n * interval '1 hour' from generate_series(1, 100) n",
        "insert into items values (0, null, null, null, null, 'infinity')",
    )
    return items


@pytest.mark.light
def test_the_distributed_path_gives_the_same_rows(items, stream_table, engine, app):
    engine.path = SparkPath.DISTRIBUTED
    tables = [stream_table(query, mode="DIFFERENTIAL") for query in QUERIES]
    for statements in WINDOWS:
        items.change(*statements)
        for table in tables:
            outcome = table.refresh()
            assert outcome.action in {Action.DIFFERENTIAL, Action.NO_DATA}, table.query
            table.equals_its_query()


def test_what_is_large_goes_to_many_tasks_of_a_cluster_by_itself(items, stream_table, engine, monkeypatch):
    spread: list[str] = []
    monkeypatch.setattr(engine.spark, "is_embedded", False)

    def run(spark, spark_sql, *arguments, **options):
        spread.append(spark_sql)
        return run_distributed(spark, spark_sql, *arguments, **options)

    monkeypatch.setattr(staging, "run_distributed", run)
    engine.large_table, engine.large_window = 10, 20
    # the pages of `items` are worth tasks here, those of `kinds` are not
    monkeypatch.setattr(staging, "FEW_PAGES", 1)
    items.change(
        "insert into items select n, 1, 2, repeat('s', 90), 3, null from generate_series(1000, 1300) n"
    )
    table = stream_table(QUERIES[0], mode="DIFFERENTIAL")
    assert len(spread) == 1
    items.change("delete from items where id = 1")
    table.refresh()
    assert len(spread) == 1
    items.change(*WINDOWS[0], "update items set n = n + 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    assert len(spread) == 2
    table.equals_its_query()


def test_tables_loaded_on_one_path_go_on_on_the_other(items, stream_table, engine):
    engine.path = SparkPath.DISTRIBUTED
    tables = [stream_table(query, mode="DIFFERENTIAL") for query in QUERIES[:2]]
    for path, statements in zip((SparkPath.SMALL, SparkPath.DISTRIBUTED), WINDOWS, strict=True):
        engine.path = path
        items.change(*statements)
        for table in tables:
            table.refresh()
            table.equals_its_query()


def test_rows_that_a_change_does_not_touch_are_not_written(items, stream_table, engine, app):
    rows = stream_table("select id, kind, v from items")
    groups = stream_table("select kind, count(*) as n, max(v) as top, sum(n) as s from items group by kind")
    lists = stream_table("select kind, string_agg(s, ',' order by id) as all from items group by kind")
    copies = stream_table("select kind, v from items")
    full = stream_table("select id, rank() over (order by id) as r from items")
    reloaded = stream_table("select s, count(*) as n from items group by s")
    tables = (rows, groups, lists, copies, full)
    before = [_versions(app, table) for table in (*tables, reloaded)]
    items.change(
        "update items set v = v + 1 where id = 100",
        "update items set v = v + 1 where id = 99",
        "update items set v = v - 1 where id = 99",
        "delete from items where id = 96",
        "insert into items values (96, 0, 96 % 17, 's1', 24, '2024-01-05 00:00+00')",
    )
    for table, versions in zip(tables, before[:5], strict=True):
        table.refresh()
        table.equals_its_query()
        kept = _versions(app, table) & versions
        touched = len(versions) - len(kept)
        assert touched <= 1, f"{table.query} wrote {touched} rows that stayed as they were"
    items.change("truncate kinds", "create unique index on items (s, id)")
    app.execute("update items set s = s")
    reloaded.refresh()
    assert _versions(app, reloaded) == before[5]


def _versions(app, table) -> set[tuple[object, ...]]:
    with app.transaction():
        return set(app.execute(f"select xmin::text, ctid::text, t::text from {table.name} t").fetchall())


@pytest.mark.light
@pytest.mark.parametrize(
    "query",
    [
        "select kind, count(*) as n from items group by kind",
        "select id, rank() over (order by v) as r from items",
    ],
)
def test_readers_are_never_blocked(items, stream_table, engine, connect, query):
    """A reader in the middle of its transaction sees its snapshot, and a refresh does not wait for it."""
    table = stream_table(query)
    reader = connect(APP)
    reader.execute("set transaction isolation level repeatable read")
    reader.execute("set local lock_timeout = '1ms'")
    seen = sorted(reader.execute(f"select * from {table.name}").fetchall(), key=str)
    items.change("delete from items where id < 50", "update items set v = v + 1, kind = 3")
    table.refresh()
    assert sorted(reader.execute(f"select * from {table.name}").fetchall(), key=str) == seen
    table.equals_its_query()


@pytest.mark.parametrize(
    "query",
    [
        "select kind, count(*) as n from items group by kind",
        "select id, rank() over (order by v) as r from items",
    ],
)
def test_readers_see_whole_refreshes_only(items, stream_table, engine, connect, query):
    table = stream_table(query)
    reader = connect(APP)
    reader.autocommit = True
    stop = threading.Event()
    counts: set[int] = set()

    def read() -> None:
        reader.execute("set lock_timeout = '100ms'")
        while not stop.is_set():
            column = "sum(n)" if "n from" in query else "count(*)"
            counts.add(int(reader.execute(f"select {column} from {table.name}").fetchone()[0]))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for number in range(3):
            items.change(f"delete from items where id between {number * 10} and {number * 10 + 9}")
            table.refresh()
    finally:
        stop.set()
        thread.join()
    assert counts <= {101, 91, 81, 71}
