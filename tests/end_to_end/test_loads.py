"""Loads and large windows that PostgreSQL evaluates itself: exact, atomic, and beside readers and writers."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from pgtrickle.apply.load import fill
from pgtrickle.catalog.outcomes import mark_reinit
from pgtrickle.catalog.row_index import finish_row_index
from pgtrickle.catalog.tables import find
from pgtrickle.changes.read import native_changes_query
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.execute import differential, step
from tests.fixtures.databases import APP, TRICKLE

IN_POSTGRES = "evaluated by PostgreSQL, since Spark runs on one machine"
NOT_INDEXED = "no index on whole rows"

EVERY_TYPE = (
    "i int, b bigint, s smallint, f real, d double precision, n numeric, m numeric(12, 3), t text,"
    " v varchar(9), c char(6), bo boolean, da date, ts timestamp, tz timestamptz, iv interval, u uuid,"
    " by bytea, j jsonb, js json, a int[], ta text[], r int4range, p point, ine inet, mo mood, ba bit(3)"
)
VALUES = (
    "n, n * 1000000007::bigint, n % 100, n / 3.0, n / 7.0, n / 8.0, n / 16.0, 'text ' || n, 'v' || n % 9,"
    " 'c' || n % 5, n % 2 = 0, date '2020-01-01' + n, timestamp '2020-01-01' + n * interval '1 ms',"
    " timestamptz '2020-01-01 00:00+00' + n * interval '1 us', n * interval '1 minute',"
    " md5(n::text)::uuid, decode(md5(n::text), 'hex'), jsonb_build_object('n', n), json_build_object('n', n),"
    " array[n, null, n + 1], array['a,b', 'null', null, n::text], int4range(n, n + 5), point(n, n + 1),"
    " ('10.0.0.' || n % 250)::inet, case when n % 2 = 0 then 'glad' else 'sad' end::mood, (n % 8)::bit(3)"
)


@pytest.fixture
def large(engine):
    """Everything is large: loads from ten rows on, windows from twenty."""
    if engine.path is not SparkPath.AUTO:
        pytest.skip("the path is given")
    engine.large_table, engine.large_window = 10, 20
    return engine


@pytest.fixture
def sales(source):
    """Rows with duplicates and nulls, large enough for a load that PostgreSQL evaluates."""
    sales = source("sales(id int, region text, amount numeric)")
    sales.change(
        "insert into sales select n % 400, case when n % 7 > 0 then 'r' || n % 5 end,"
        " case when n % 11 > 0 then (n % 13) / 4.0 end from generate_series(1, 600) n"
    )
    source("regions(region text primary key, name text)", rows=[(f"r{n}", f"region {n}") for n in range(4)])
    return sales


def row_indexes(app: psycopg.Connection, table: str) -> list[str]:
    found = app.execute(
        "select indexdef from pg_indexes where tablename = %s and indexname like '%%pgtrickle_row'", (table,)
    )
    return [row[0] for row in found]


@pytest.fixture
def acting(admin):
    """Lets the role of the sidecar act for the application, which owns the stream tables."""
    admin.execute(f"grant {APP} to {TRICKLE}")
    admin.execute(f"grant create on schema public to {TRICKLE}")
    yield
    # roles belong to the server, which other tests use too
    admin.execute(f"revoke {APP} from {TRICKLE}")


class TestLoads:
    @pytest.mark.parametrize(
        "query",
        [
            "select region, amount from sales",
            "select id, region, upper(region) as loud, amount * 2 as twice from sales where amount > 1",
            "select s.id, r.name, s.amount from sales s left join regions r on r.region = s.region",
            "select distinct region from sales",
            "select region, count(*) as n, sum(amount) as s, min(amount) as m from sales group by region",
            "select region, string_agg(id::text, ',' order by id) as ids from sales group by region",
            "select region, amount from sales where id < 0",
            "select count(*) as n, sum(amount) as total from sales where id < 0",
            "select id, amount from sales where amount > (select avg(amount) from sales)",
            "select region, amount, rank() over (partition by region order by amount) as r from sales",
        ],
    )
    def test_they_are_exact_and_can_be_followed(self, large, sales, stream_table, query):
        table = stream_table(query, mode="DIFFERENTIAL", loads=False)
        outcome = table.refresh()
        assert outcome.action is Action.REINITIALIZE
        assert IN_POSTGRES in outcome.reason
        table.equals_its_query()
        for statement in (
            "update sales set amount = amount + 1 where id < 9",
            "delete from sales where region = 'r1'",
            "insert into sales values (-1, 'r9', null), (-1, 'r9', null), (3, null, 7.50)",
        ):
            sales.change(statement)
            assert table.refresh().action is Action.DIFFERENTIAL
            table.equals_its_query()

    def test_every_type_arrives_as_it_is(self, large, source, stream_table, app):
        app.execute("create type mood as enum ('sad', 'glad')")
        things = source(f"things({EVERY_TYPE})")
        # nulls in every column, and each row twice
        things.change(
            *[f"insert into things select {VALUES} from generate_series(1, 60) n"] * 2,
            "insert into things default values",
        )
        # json and points have no equality, so rows are compared as they are written
        query = "select * from things where i is null or i % 5 < 4"
        table = stream_table(query, mode="DIFFERENTIAL", loads=False)
        written = "select t::text from {} t order by 1"
        for statement in (
            "select",
            "update things set i = i + 1, m = m * 2, t = t || '!', a = a || 1, f = f * 1.1",
            "delete from things where bo",
            f"insert into things select {VALUES} from generate_series(30, 90) n",
        ):
            things.change(statement)
            assert IN_POSTGRES in table.refresh().reason
            shown = app.execute(written.format(table.name)).fetchall()
            assert shown == app.execute(written.format(f"({table.query})")).fetchall()

    def test_a_table_with_rows_is_compared(self, large, sales, stream_table):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL")
        before = table.rows()
        with large.connection() as connection:
            mark_reinit(connection, find(connection, table.name).id, "a test")
            connection.commit()
        outcome = table.refresh()
        assert IN_POSTGRES in outcome.reason
        assert (outcome.action, outcome.rows_inserted, outcome.rows_deleted) == (Action.REINITIALIZE, 0, 0)
        assert sorted(map(str, table.rows())) == sorted(map(str, before))

    def test_nobody_waits_and_nothing_is_lost(self, large, sales, stream_table, database, monkeypatch):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL", loads=False)
        seen: list[object] = []

        def watched(*arguments):
            applied = fill(*arguments)
            with closing(database.connect(APP, autocommit=True)) as other:
                other.execute("set statement_timeout = '5s'")
                seen.extend(other.execute(f"select count(*) from {table.name}").fetchone())
                other.execute("insert into sales values (5000, 'late', 1)")
                other.execute("delete from sales where id = 1")
            return applied

        with monkeypatch.context() as patch:
            patch.setattr(step, "fill", watched)
            assert table.refresh().action is Action.REINITIALIZE
        assert seen == [0]
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()

    def test_a_load_that_is_killed_leaves_nothing(
        self, large, sales, stream_table, admin, app, acting, monkeypatch
    ):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL", loads=False)

        def killed(connection, found):
            admin.execute("select pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))
            return finish_row_index(connection, found)

        with monkeypatch.context() as patch:
            patch.setattr(step, "finish_row_index", killed)
            with pytest.raises((PgTrickleError, psycopg.OperationalError)):
                table.refresh()
        assert table.rows() == []
        assert row_indexes(app, table.name) == []
        assert table.refresh().action is Action.REINITIALIZE
        table.equals_its_query()
        assert len(row_indexes(app, table.name)) == 1


class TestTheIndex:
    def test_it_is_created_after_the_load_if_the_sidecar_may(self, large, sales, stream_table, app, acting):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL", loads=False)
        assert row_indexes(app, table.name) == []
        assert NOT_INDEXED not in table.refresh().reason
        assert len(row_indexes(app, table.name)) == 1
        table.equals_its_query()

    def test_small_and_full_loads_create_it_too(self, sales, stream_table, app, acting):
        for mode in ("DIFFERENTIAL", "FULL"):
            table = stream_table("select id, region from sales", mode=mode)
            assert len(row_indexes(app, table.name)) == 1

    def test_it_is_created_at_once_if_the_sidecar_may_not(self, sales, stream_table, app):
        table = stream_table("select id, region from sales", loads=False)
        assert len(row_indexes(app, table.name)) == 1

    def test_the_history_tells_if_it_is_missing(self, large, sales, stream_table, app, admin, acting):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL", loads=False)
        admin.execute(f"revoke {APP} from {TRICKLE}")
        assert NOT_INDEXED in table.refresh().reason
        table.equals_its_query()
        sales.change("delete from sales where id < 5")
        table.refresh()
        table.equals_its_query()


class TestWindows:
    def test_what_only_passes_through_spark_stays_in_postgres(self, large, sales, stream_table):
        table = stream_table(
            "select region, amount * 2 as twice from sales where amount is not null", mode="DIFFERENTIAL"
        )
        for statements in (
            ("update sales set amount = amount + 1", "update sales set amount = amount - 1 where id % 2 = 0"),
            (
                "delete from sales where id % 3 = 0",
                "insert into sales select n, 'new', n from generate_series(1, 9) n",
            ),
            ("insert into sales select id, region, amount from sales", "update sales set region = null"),
            ("delete from sales",),
        ):
            sales.change(*statements)
            outcome = table.refresh()
            assert outcome.action is Action.DIFFERENTIAL
            assert IN_POSTGRES in outcome.reason
            table.equals_its_query()

    def test_rows_with_a_key_are_updated(self, large, source, stream_table, app):
        items = source("items(id int primary key, v numeric)")
        items.change("insert into items select n, n from generate_series(1, 100) n")
        table = stream_table("select id, v, v * 2 as twice from items", mode="DIFFERENTIAL")
        items.change("update items set v = v + 1 where id <= 40", "update items set v = 50.00 where id = 50")
        outcome = table.refresh()
        assert IN_POSTGRES in outcome.reason
        assert (outcome.rows_inserted, outcome.rows_deleted) == (41, 41)
        shown = app.execute(f"select t::text from {table.name} t order by id").fetchall()
        assert shown == app.execute(f"select t::text from ({table.query}) t order by id").fetchall()

    def test_a_change_after_the_snapshot_is_left_for_the_next_window(
        self, large, sales, stream_table, app, monkeypatch
    ):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL")
        sales.change("update sales set amount = 1 where id < 100")

        def later(*arguments):
            app.execute("insert into sales select n, 'later', n from generate_series(1, 30) n")
            app.execute("delete from sales where id = 7")
            return native_changes_query(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(differential, "native_changes_query", later)
            assert IN_POSTGRES in table.refresh().reason
        assert app.execute(f"select count(*) from {table.name} where region = 'later'").fetchone() == (0,)
        assert IN_POSTGRES in table.refresh().reason
        table.equals_its_query()

    def test_a_transaction_that_commits_late_is_in_its_own_window(self, large, sales, stream_table, database):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL")
        with closing(database.connect(APP)) as slow:
            slow.execute("insert into sales select n, 'slow', n from generate_series(1, 40) n")
            sales.change("insert into sales select n, 'fast', n from generate_series(1, 40) n")
            assert IN_POSTGRES in table.refresh().reason
            table.equals_its_query()
            slow.commit()
        assert IN_POSTGRES in table.refresh().reason
        table.equals_its_query()

    def test_on_a_cluster_tasks_compute_them(self, large, sales, stream_table, monkeypatch):
        monkeypatch.setattr(large.spark, "is_embedded", False)
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL", loads=False)
        assert IN_POSTGRES not in table.refresh().reason
        sales.change("update sales set amount = amount + 1")
        assert IN_POSTGRES not in table.refresh().reason
        table.equals_its_query()

    def test_a_reader_of_changes_gets_them(self, large, sales, stream_table, app):
        table = stream_table("select id, region, amount from sales", mode="DIFFERENTIAL")
        app.execute("select pgtrickle.alter_stream_table(%s, keep_changes => '1 hour')", (table.name,))
        table.refresh()
        sales.change("update sales set amount = 0 where id < 50", "delete from sales where id = 60")
        outcome = table.refresh()
        assert IN_POSTGRES in outcome.reason
        table.equals_its_query()
