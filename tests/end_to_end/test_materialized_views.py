"""Materialized views as sources: compared with a copy before each refresh, and followed differentially."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest

from pgtrickle.commands.explain import explain
from pgtrickle.commands.verify import verify
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action
from tests.end_to_end.viewed import CHANGES, viewed
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import TRICKLE
from tests.scheduler.states import board

QUERIES = {
    "rows": "select * from m",
    "no column": "select count(*) as n from m",
    "filter": "select id, upper(kind) as kind, amount * 2 as twice from m where amount > 1",
    "join": "select m.id, m.amount, k.label from m join kinds k on k.kind = m.kind",
    "outer join": "select k.kind, m.id, m.ratio from kinds k left join m on m.kind = k.kind",
    "self join": "select a.id, b.id as other from m a join m b on a.kind = b.kind and a.id < b.id",
    "group": "select kind, count(*) as n, sum(amount) as s, max(at) as latest from m group by kind",
    "distinct": "select distinct kind, amount::numeric(12,2) as amount from m",
    "string_agg": "select kind, string_agg(doc::text, ',' order by id, doc) as docs from m group by kind",
    "window": "select id, amount, rank() over (partition by kind order by id) as r from m",
    "first rows": "select id, amount from m order by amount desc nulls last, id limit 2",
    "except": "select kind from kinds except select kind from m",
    "exists": "select k.label from kinds k where exists (select from m where m.kind = k.kind)",
    "union all": "select kind from m union all select kind from kinds",
    "below a view": "select kind, n from per_kind where n > 1",
}


@pytest.fixture
def shop(source):
    return viewed(source)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_stream_table_follows_a_materialized_view(shop, stream_table, query):
    table = stream_table(query, mode="DIFFERENTIAL")
    for statements in CHANGES:
        shop.change(*statements, "refresh materialized view m")
        outcome = table.refresh()
        assert outcome.action in (Action.DIFFERENTIAL, Action.NO_DATA), outcome.reason
        table.equals_its_query()
    assert table.refresh().action is Action.NO_DATA


TYPES = "typed(n numeric, f float8, r real, j json, x jsonpath, p point, b bytea, i interval, c person)"
VALUES = (
    "values ('1.0', '0', '-0', '{\"a\": 1}', '$.a', '(0,0)', '\\x01', '30 days', ('Ann', 1.0))",
    "values ('1.00', '-0', '0', '{\"a\":1}', '$.b', '(-0,0)', '\\x0001', '1 mon', ('Ann', 1.00))",
    "values ('NaN', 'NaN', '-infinity', null, null, '(NaN,1e-300)', '', '-1 s', null)",
    "values (null, 0.1 + 0.2, 1e-45, 'null', '$', null, null, null, (null, null))",
)


@pytest.mark.every_postgres
def test_a_copy_is_the_view_to_the_letter(source, stream_table, app, admin):
    app.execute("create type person as (name text, age numeric)")
    typed = source(TYPES)
    typed.change("create materialized view m as table typed", f"grant select on m to {TRICKLE}")
    table = stream_table("select * from m", mode="DIFFERENTIAL", loads=False)
    table.refresh()
    row = app.execute("select 'm'::regclass::oid").fetchone()
    assert row is not None
    for number, values in enumerate(VALUES):
        typed.change(f"insert into typed {values}", f"insert into typed {values}")
        typed.change(f"insert into typed {VALUES[number - 1]}", "refresh materialized view m")
        table.refresh()
        assert_same_bag(
            admin, f"select z::text from pgtrickle_state.copy_of_{row[0]} z", "select m::text from m"
        )
        assert_same_bag(admin, f"select t.n, t.i from {table.name} t", "select n, i from m")


def test_a_view_whose_sources_changed_but_which_was_not_refreshed_has_not_changed(shop, stream_table):
    table = stream_table("select id, amount from m", mode="DIFFERENTIAL")
    shop.change(*CHANGES[0])
    assert table.refresh().action is Action.NO_DATA
    shop.change("refresh materialized view m", "refresh materialized view m")
    assert table.refresh().action is Action.DIFFERENTIAL
    shop.change("refresh materialized view m")
    assert table.refresh().action is Action.NO_DATA
    table.equals_its_query()


@pytest.mark.every_postgres
def test_a_concurrent_refresh_is_noticed(source, app, stream_table):
    items = source("items(id int primary key, n int)", rows=[(1, 1), (2, 2), (3, None)])
    items.change("create materialized view m as select * from items", f"grant select on m to {TRICKLE}")
    items.change("create unique index on m (id)")
    table = stream_table("select sum(n) as total, count(*) as rows from m", mode="DIFFERENTIAL")
    for statement in ("update items set n = n + 1", "delete from items where id = 2", "delete from items"):
        items.change(statement)
        app.execute("refresh materialized view concurrently m")
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()
    app.execute("refresh materialized view concurrently m")
    assert table.refresh().action is Action.NO_DATA


@pytest.mark.light
def test_two_stream_tables_over_one_view_follow_it_at_different_times(shop, stream_table, admin):
    often = stream_table("select id, amount from m", mode="DIFFERENTIAL")
    seldom = stream_table("select kind, count(*) as n from m group by kind", mode="DIFFERENTIAL")
    assert copies(admin) == 1
    for number, statements in enumerate(CHANGES):
        shop.change(*statements, "refresh materialized view m")
        assert often.refresh().action is Action.DIFFERENTIAL
        often.equals_its_query()
        if number % 2:
            assert seldom.refresh().action is Action.DIFFERENTIAL
            seldom.equals_its_query()
    seldom.refresh()
    seldom.equals_its_query()


def test_a_second_stream_table_widens_the_copy(shop, stream_table):
    narrow = stream_table("select kind from m", mode="DIFFERENTIAL")
    shop.change(*CHANGES[0], "refresh materialized view m")
    wide = stream_table("select id, kind, amount, doc from m", mode="DIFFERENTIAL")
    shop.change(*CHANGES[1], "refresh materialized view m")
    for table in (narrow, wide):
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()


def test_the_last_reader_takes_the_copy_along(shop, stream_table, app, admin):
    first, second = stream_table("select id from m"), stream_table("select kind from m")
    app.execute("select pgtrickle.drop_stream_table(%s)", (first.name,))
    shop.change(*CHANGES[0], "refresh materialized view m")
    second.refresh()
    second.equals_its_query()
    app.execute("select pgtrickle.drop_stream_table(%s)", (second.name,))
    assert copies(admin) == 0
    assert admin.execute("select count(*) from pgtrickle.pgt_sources").fetchone() == (0,)
    assert admin.execute(
        "select count(*) from pg_class where relnamespace = 'pgtrickle_changes'::regnamespace"
        " and relname ~ '^changes_'"
    ).fetchone() == (0,)


def test_stream_tables_above_follow_together(shop, stream_table, engine):
    stream_table("select kind, count(*) as n from m group by kind", name="counted", mode="DIFFERENTIAL")
    stream_table("select kind, sum(amount) as s from m group by kind", name="summed", mode="DIFFERENTIAL")
    both = stream_table(
        "select c.kind, c.n, s.s, m.id from counted c join summed s on s.kind = c.kind"
        " join m on m.kind = c.kind",
        mode="DIFFERENTIAL",
    )
    for statements in CHANGES[:3]:
        shop.change(*statements, "refresh materialized view m")
        verify(engine, both.name)
        both.equals_its_query()


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_what_is_recomputed_reads_the_copy_too(shop, stream_table, engine, mode):
    # in which order an array is put together nobody can follow
    query = (
        "select g.kind, cardinality(g.ids) as many, p.n from per_kind p"
        " left join (select kind, array_agg(id) as ids from m group by kind) g on g.kind = p.kind"
    )
    table = stream_table(query, mode=mode)
    for statements in CHANGES:
        shop.change(*statements, "refresh materialized view m")
        assert table.refresh().action in (Action.FULL, Action.NO_DATA)
        table.equals_its_query()
        verify(engine, table.name)
    assert table.refresh().action is Action.NO_DATA


def test_explain_tells_that_it_is_compared_and_why(shop, stream_table, engine):
    table = stream_table("select m.id, k.label from m join kinds k on k.kind = m.kind")
    text = explain(engine, table.name).text
    assert (
        "sources followed by comparing snapshots:\n  public.m: compared with pgtrickle_state.copy_of_" in text
    )
    assert "because a materialized view can have no triggers; the whole view is read" in text
    assert "public.kinds: compared" not in text
    assert "comparing snapshots" in explain(engine, stream_table("table m", mode="FULL").name).text


def test_a_copy_has_the_indexes_of_the_view(shop, stream_table, engine):
    shop.change(
        "create index on kinds (label)", "create index on m (kind, id)", "create index on m (lower(kind))"
    )
    stream_table("select place from m")
    table = stream_table("select m.id, k.label from m join kinds k on k.kind = m.kind", mode="DIFFERENTIAL")
    assert explain(engine, table.name).text.endswith("indexes that lookups lack:\n  none")
    shop.change(*CHANGES[1], "refresh materialized view m")
    table.refresh()
    table.equals_its_query()


def test_both_paths_on_spark_read_the_copy(shop, stream_table, engine):
    engine.path = SparkPath.DISTRIBUTED
    table = stream_table(QUERIES["join"], mode="DIFFERENTIAL")
    for path, statements in zip(
        (SparkPath.DISTRIBUTED, SparkPath.SMALL, SparkPath.DISTRIBUTED), CHANGES, strict=False
    ):
        engine.path = path
        shop.change(*statements, "refresh materialized view m")
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()


def test_the_owner_sees_how_each_source_is_followed(shop, stream_table, app, pytestconfig):
    table = stream_table("select m.id, k.label from m join kinds k on k.kind = m.kind")
    rows = app.execute(
        "select source_table, source_type, cdc_mode from pgtrickle.list_sources(%s)", (table.name,)
    ).fetchall()
    capture = pytestconfig.getoption("--cdc")
    assert rows == [("public.m", "materialized_view", "compare"), ("public.kinds", "table", capture)]


@pytest.mark.light
def test_the_scheduler_sees_that_a_view_was_refreshed(shop, stream_table, app, engine):
    table = stream_table("select id from m")
    app.execute("select pgtrickle.alter_stream_table(%s, schedule => 'calculated')", (table.name,))

    def is_due() -> bool:
        with engine.connection() as connection:
            return bool(board(connection).take_due(datetime.now(UTC)))

    assert not is_due()
    shop.change(*CHANGES[0])
    assert not is_due()
    shop.change("refresh materialized view m")
    assert is_due()
    table.refresh()
    assert not is_due()


def copies(admin: psycopg.Connection) -> int:
    row = admin.execute(
        "select count(*) from pg_class where relnamespace = 'pgtrickle_state'::regnamespace"
        " and relname ~ '^copy_of_'"
    ).fetchone()
    assert row is not None
    return int(row[0])
