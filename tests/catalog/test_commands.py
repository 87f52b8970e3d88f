"""The SQL functions: creating, altering, dropping and looking, in the caller's transaction."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from pgtrickle.catalog.dependencies import changes_under, forget_dropped, reanalyse
from pgtrickle.catalog.tables import find, stream_tables
from pgtrickle.model.errors import OtherColumns, SourceChanged, UnknownStreamTable
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.scheduler.service.load_definitions import load_graph
from tests.fixtures.polls import generation, requested
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.every_postgres

ODD = '"x""; drop table y; --"'


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, customer int, amount numeric(8, 2))", rows=[(1, 1, 10)])


def created(app, name="s", query="select id, amount from orders", **options):
    given = "".join(f", {key} => %s" for key in options)
    app.execute(f"select pgtrickle.create_stream_table(%s, %s{given})", (name, query, *options.values()))


def columns(app: psycopg.Connection, table: str) -> list[tuple[str, str]]:
    return app.execute(
        "select attname, format_type(atttypid, atttypmod) from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0 order by attnum",
        (table,),
    ).fetchall()


def test_it_has_the_columns_of_its_query_and_no_others(orders, app):
    created(app)
    assert columns(app, "s") == [("id", "integer"), ("amount", "numeric(8,2)")]


def test_the_catalog_knows_it_with_every_name_in_full(orders, app, connection):
    created(app, schedule="5S", refresh_mode="full")
    (table,) = stream_tables(connection)
    assert table.name == RelationName("public", "s")
    assert " FROM public.orders" in table.query
    assert (table.schedule, table.mode.value, table.status) == ("5s", "FULL", Status.INITIALIZING)
    assert dict(table.settings)["DateStyle"] == "ISO, MDY"
    assert table.match_columns == ("id", "amount")


def test_it_comes_and_goes_with_the_transaction_of_the_caller(orders, app, connection):
    with app.transaction(force_rollback=True):
        created(app)
    assert stream_tables(connection) == ()
    assert app.execute("select to_regclass('s')").fetchone() == (None,)
    assert app.execute("select count(*) from pg_trigger where tgname ~ 'pgtrickle'").fetchone() == (0,)


@pytest.mark.parametrize("name", [ODD, '"Capital Letters"', '"select"', "ümlaut", '"a.b"', "s" * 63])
def test_names_of_every_kind_work(orders, app, connection, name):
    created(app, name)
    assert find(connection, name).id == StreamTableId(1)
    connection.commit()
    app.execute("select pgtrickle.alter_stream_table(%s, schedule => '2s')", (name,))
    app.execute("select * from pgtrickle.get_refresh_history(%s)", (name,))
    app.execute("select pgtrickle.drop_stream_table(%s)", (name,))
    assert stream_tables(connection) == ()


def test_a_bare_name_is_found_along_the_search_path(orders, app, admin, connection):
    admin.execute("create schema other authorization app")
    admin.execute("grant usage on schema other to trickle")
    created(app, "other.s")
    connection.commit()
    with pytest.raises(UnknownStreamTable):
        find(connection, "s")
    assert find(connection, "other.s").name == RelationName("other", "s")
    app.execute("set search_path = other, public")
    app.execute("select pgtrickle.alter_stream_table('s', schedule => '7s')")
    created(app, "t", "select id from s")
    assert app.execute("select to_regclass('other.t') is not null").fetchone() == (True,)


def test_the_schema_must_be_open_to_the_sidecar(orders, app, admin):
    admin.execute("create schema closed authorization app")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="closed") as refusal:
        created(app, "closed.s")
    assert refusal.value.diag.message_hint == "grant usage on schema closed to trickle"


def test_views_are_dependencies_and_so_are_the_tables_below(orders, app):
    app.execute("create view rich as select id from orders where amount > 5")
    created(app, query="select id from rich")
    found = app.execute(
        "select source_table, source_type, columns_used from pgtrickle.list_sources('s')"
    ).fetchall()
    assert found == [("public.orders", "table", ["id", "amount"]), ("public.rich", "view", ["id"])]


def test_a_whole_row_uses_all_columns(orders, app):
    created(app, query="select o::text as line from orders o")
    row = app.execute("select columns_used from pgtrickle.list_sources('s')").fetchone()
    assert row == (["id", "customer", "amount"],)


def test_stream_tables_over_stream_tables_are_known(orders, app, connection):
    created(app)
    created(app, "t", "select id from s")
    graph = load_graph(connection)
    assert [graph.upstream(StreamTableId(n)) for n in (1, 2)] == [frozenset(), {1}]


def test_a_circle_is_refused(orders, app):
    created(app)
    created(app, "t", "select id, amount from s")
    with pytest.raises(psycopg.errors.InvalidRecursion, match="read itself"):
        app.execute("select pgtrickle.alter_stream_table('s', query => 'select id, amount from t')")


def test_creating_again_is_refused_skipped_or_replaced(orders, app, connection):
    created(app)
    with pytest.raises(psycopg.errors.DuplicateTable):
        created(app)
    app.execute("select pgtrickle.create_stream_table_if_not_exists('s', 'select 1 as one from orders')")
    before = generation(connection)
    connection.commit()
    replace = "select pgtrickle.create_or_replace_stream_table('s', %s, '9s')"
    app.execute(replace, ("select id, amount from orders",))
    assert find(connection, "s").schedule == "9s"
    assert generation(connection) != before
    connection.commit()
    app.execute(replace, ("select id, amount from orders where id > 1",))
    table = find(connection, "s")
    assert table.reinit_reason == "its query was altered"
    assert "id > 1" in table.query


def test_removing_what_the_sidecar_removes_at_the_same_time_is_no_error(orders, app, connection, admin):
    created(app)
    app.execute("drop table s")
    connection.execute("delete from pgtrickle.pgt_stream_tables")
    with ThreadPoolExecutor(1) as other:
        dropped = other.submit(app.execute, "select pgtrickle.drop_stream_table('s')")
        waiting = "select count(*) from pg_stat_activity where usename = 'app' and wait_event_type = 'Lock'"
        eventually(lambda: admin.execute(waiting).fetchone() == (1,))
        connection.commit()
        dropped.result(60)
    assert admin.execute("select count(*) from pgtrickle.pgt_stream_tables").fetchone() == (0,)


def test_the_same_definition_again_waits_for_no_refresh_and_writes_nothing(orders, app, connection, connect):
    replace = (
        "select pgtrickle.create_or_replace_stream_table('s', 'select id from orders', '9s',"
        " refresh_timeout => %s, diamond_schedule_policy => %s)"
    )
    app.execute(replace, ("5min", "slowest"))
    row = "select xmin, s.* from pgtrickle.pgt_stream_tables s"
    before = connection.execute(row).fetchall()
    connection.execute("select from pgtrickle.pgt_stream_tables for no key update")
    app.execute("set lock_timeout = '1s'")
    app.execute(replace, ("300 s", "SLOWEST"))
    with pytest.raises(psycopg.errors.LockNotAvailable):
        app.execute(replace, ("default", "default"))
    connection.rollback()
    assert connection.execute(row).fetchall() == before
    connection.commit()
    stranger = connect("trickle")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="you must own"):
        stranger.execute(replace, ("5min", "slowest"))


def test_options_return_to_their_defaults(orders, app, admin):
    created(app)
    alter = "select pgtrickle.alter_stream_table('s', refresh_timeout => %s, diamond_schedule_policy => %s)"
    stored = "select refresh_timeout, diamond_schedule_policy from pgtrickle.pgt_stream_tables"
    app.execute(alter, ("5min", "slowest"))
    assert admin.execute(stored).fetchone() == (300.0, "slowest")
    app.execute(alter, (None, None))
    assert admin.execute(stored).fetchone() == (300.0, "slowest")
    app.execute(alter, ("default", "default"))
    assert admin.execute(stored).fetchone() == (None, None)


def test_an_altered_query_may_have_other_columns(orders, app, connection):
    created(app)
    app.execute(
        "select pgtrickle.alter_stream_table('s', query => 'select id, amount, customer from orders')"
    )
    assert columns(app, "s")[2] == ("customer", "integer")
    assert find(connection, "s").match_columns == ("id", "amount", "customer")


def test_a_source_that_changes_the_columns_of_the_result_stops_it(orders, app, connection):
    created(app)
    app.execute("alter table orders alter column id type bigint")
    with pytest.raises(SourceChanged, match="does not have the columns") as refusal:
        reanalyse(connection, find(connection, "s").id, "id has another type")
    assert isinstance(refusal.value.__cause__, psycopg.Error)
    assert refusal.value.__cause__.sqlstate == OtherColumns.sqlstate
    query = find(connection, "s").query
    connection.commit()
    app.execute("select pgtrickle.alter_stream_table('s', query => %s)", (query,))
    assert columns(app, "s")[0] == ("id", "bigint")


def test_options_not_given_stay_as_they_are(orders, app, connection):
    created(app, schedule="5s", refresh_mode="FULL")
    app.execute("select pgtrickle.alter_stream_table('s', tier => 'cold')")
    table = find(connection, "s")
    assert (table.schedule, table.mode.value) == ("5s", "FULL")
    connection.commit()
    app.execute("select pgtrickle.alter_stream_table('s', schedule => 'manual')")
    assert find(connection, "s").schedule is None


def test_suspending_and_resuming(orders, app, connection):
    created(app)
    app.execute("select pgtrickle.alter_stream_table('s', status => 'suspended')")
    assert find(connection, "s").status is Status.SUSPENDED
    connection.commit()
    app.execute("select pgtrickle.resume_stream_table('s')")
    assert find(connection, "s").status is Status.INITIALIZING


def test_dropping_names_the_dependants_unless_told_to_cascade(orders, app, connection):
    created(app)
    created(app, "t", "select id from s")
    app.execute("create view v as select id from t")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match=r"public\.t"):
        app.execute("select pgtrickle.drop_stream_table('s')")
    app.execute("select pgtrickle.drop_stream_table('s', cascade => true)")
    assert stream_tables(connection) == ()
    assert app.execute("select to_regclass('t'), to_regclass('v')").fetchone() == (None, None)


def test_a_table_dropped_by_hand_is_forgotten(orders, app, connection):
    created(app)
    app.execute("drop table s")
    assert forget_dropped(connection) == ["public.s"]
    assert stream_tables(connection) == ()
    created(app)


def test_a_renamed_stream_table_stays_the_same(orders, app, connection):
    created(app)
    app.execute("alter table s rename to renamed")
    assert find(connection, "renamed").name == RelationName("public", "renamed")
    forget_dropped(connection)
    assert connection.execute("select pgt_name from pgtrickle.pgt_stream_tables").fetchone() == ("renamed",)


@pytest.mark.parametrize(
    ("alteration", "says", "is_fatal"),
    [
        ("drop table orders", "table public.orders was dropped", True),
        ("alter table orders rename to purchases", "now called public.purchases", True),
        ("alter table orders drop column amount", "column amount of public.orders was dropped", True),
        ("alter table orders rename amount to price", "now called price", True),
        (
            "alter table orders alter amount type numeric(9, 3)",
            "had type numeric(8,2) and now has type numeric(9,3)",
            False,
        ),
        ("alter table orders drop constraint orders_pkey", "lost a key", False),
    ],
)
def test_what_changes_below_is_noticed(orders, app, connection, alteration, says, is_fatal):
    created(app)
    app.execute(alteration)
    (table,) = stream_tables(connection)
    change, *_ = changes_under(connection, table.id)
    assert says in change.what
    if is_fatal:
        with pytest.raises(SourceChanged):
            reanalyse(connection, table.id, change.what)
    else:
        reanalyse(connection, table.id, change.what)
        assert changes_under(connection, table.id) == ()


@pytest.mark.parametrize(
    "alteration",
    [
        "create index on orders(amount)",
        "alter table orders add column note text",
        "alter table orders drop column customer",
        "alter table orders add unique (id, amount)",
        "alter table orders add check (amount > 0)",
        "analyze orders",
    ],
)
def test_what_nobody_relies_on_may_change(orders, app, connection, alteration):
    created(app)
    app.execute(alteration)
    assert changes_under(connection, StreamTableId(1)) == ()


def test_a_replaced_view_or_function_is_noticed(orders, app, admin, connection):
    app.execute("create view rich as select id from orders")
    admin.execute("create function f(int) returns int immutable language sql as 'select $1'")
    created(app, query="select f(id) as id from rich")
    app.execute("create or replace view rich as select id from orders where amount > 1")
    admin.execute("create or replace function f(int) returns int immutable language sql as 'select $1 + 1'")
    found = [change.what for change in changes_under(connection, StreamTableId(1))]
    assert sorted(found) == ["function public.f(integer) was replaced", "view public.rich was replaced"]
    reanalyse(connection, StreamTableId(1), found[0])
    assert changes_under(connection, StreamTableId(1)) == ()
    connection.commit()
    row = app.execute(
        "select columns_used from pgtrickle.list_sources('s') where source_type = 'table'"
    ).fetchone()
    assert row == (["id", "amount"],)


def test_a_table_swapped_for_another_is_followed_anew(orders, app, connection, source):
    created(app)
    source("next_orders(id int, customer int, amount numeric(8, 2))")
    orders.change("alter table orders rename to old_orders", "alter table next_orders rename to orders")
    (change,) = changes_under(connection, StreamTableId(1))
    connection.commit()
    reanalyse(connection, StreamTableId(1), change.what)
    row = app.execute("select source_oid = 'orders'::regclass from pgtrickle.list_sources('s')").fetchone()
    assert row == (True,)


def test_looking_functions_answer(orders, app):
    created(app)
    assert app.execute("select name, status, is_populated from pgtrickle.pgt_status()").fetchall() == [
        ("public.s", "INITIALIZING", False)
    ]
    orders.change("update orders set amount = 11")
    assert app.execute(
        "select stream_table, source_table, pending_rows from pgtrickle.change_buffer_sizes()"
    ).fetchall() == [("public.s", "public.orders", 2)]
    assert app.execute("select * from pgtrickle.explain_refresh_mode('s')").fetchone() == ("AUTO", None, None)
    assert app.execute("select pgtrickle.get_staleness('s')").fetchone() == (None,)
    assert app.execute(
        "select bool_and(is_present and is_enabled and fires_for_replication)"
        " from pgtrickle.trigger_inventory()"
    ).fetchone() == (True,)


def test_a_wish_is_seen_before_its_transaction_ends(orders, app, connection, connect):
    created(app)
    waiting = connect("app")
    waiting.execute("select pg_advisory_xact_lock_shared(pgtrickle_internal.refresh_lock(), 1)")
    assert requested(connection) == {1}
    waiting.rollback()
    connection.commit()
    assert requested(connection) == frozenset()


def test_waiting_without_a_sidecar_ends_with_a_hint(orders, app, connection):
    created(app)
    with pytest.raises(psycopg.errors.CannotConnectNow, match="none has been seen yet") as refusal:
        app.execute("call pgtrickle.refresh_and_wait('s', '10 ms')")
    assert "pgtrickle run" in (refusal.value.diag.message_hint or "")
    assert requested(connection) == {1}
    app.execute("set pgtrickle.wait_timeout = '10 ms'")
    with pytest.raises(psycopg.errors.CannotConnectNow, match="no sidecar"):
        app.execute("select pgtrickle.refresh_stream_table('s')")
    with pytest.raises(psycopg.errors.CannotConnectNow, match="no sidecar"):
        app.execute(
            "call pgtrickle.create_stream_table_and_wait('t', 'select id from orders', timeout => '1 ms')"
        )
    assert app.execute("select to_regclass('t') is not null").fetchone() == (True,)
