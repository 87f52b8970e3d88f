"""A materialized view becomes a stream table: what it keeps, and what cannot be adopted."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg
import pytest

from pgtrickle.catalog.dependencies import settle
from pgtrickle.catalog.tables import find, stream_tables
from pgtrickle.model.errors import StillInUse, UnknownRelation, UntrustedCode, WrongKind, WrongState
from pgtrickle.model.stream_table import Status
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres

QUERY = "select customer, sum(amount) as total, count(*) as n from orders group by customer"


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)", rows=[(1, 1, 10), (2, 1, 5), (3, 2, 7)]
    )


@pytest.fixture
def view(orders, app):
    app.execute(f"create materialized view totals as {QUERY}")
    return "totals"


def adopt(app: psycopg.Connection, name: str = "totals", **options: object) -> None:
    given = "".join(f", {key} => %s" for key in options)
    app.execute(f"select pgtrickle.adopt_materialized_view(%s{given})", (name, *options.values()))


def kind(app: psycopg.Connection, name: str = "totals") -> str:
    row = app.execute("select relkind::text from pg_class where oid = %s::regclass", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def test_it_becomes_a_table_with_its_rows_and_its_query(view, app, connection):
    app.execute("insert into orders values (4, 3, 1)")
    old = app.execute("select * from totals order by 1").fetchall()
    adopt(app, schedule="5s", tier="warm")
    assert kind(app) == "r"
    assert app.execute("select * from totals order by 1").fetchall() == old
    (table,) = stream_tables(connection)
    assert (table.schedule, table.status) == ("5s", Status.INITIALIZING)
    assert table.reinit_reason == "it was a materialized view"
    assert "sum(" in table.query
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        app.execute("delete from totals")


def test_it_keeps_indexes_grants_comments_options_and_views(view, app, admin):
    admin.execute("do $$ begin create role reader; exception when duplicate_object then null; end $$")
    app.execute("create unique index totals_key on totals (customer); create index on totals (total desc)")
    app.execute(
        "comment on materialized view totals is 'sums'; comment on column totals.total is 'all of it'"
    )
    app.execute("comment on index totals_key is 'key'; grant select on totals to reader")
    app.execute("grant select (n) on totals to public")
    app.execute("alter materialized view totals alter column total set statistics 77")
    app.execute("alter materialized view totals set (fillfactor = 80)")
    app.execute("create view rich as select customer from totals where total > 8")
    app.execute("create view richest as select max(customer) as who from rich")
    before = app.execute("select 'rich'::regclass::oid").fetchone()
    adopt(app)
    assert [
        text
        for (text,) in app.execute(
            "select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'totals'::regclass"
            " and indexrelid::regclass::text !~ 'pgtrickle' order by 1"
        )
    ] == [
        "CREATE INDEX totals_total_idx ON public.totals USING btree (total DESC)",
        "CREATE UNIQUE INDEX totals_key ON public.totals USING btree (customer)",
    ]
    assert app.execute(
        "select obj_description('totals'::regclass), col_description('totals'::regclass, 2),"
        " obj_description('totals_key'::regclass), has_table_privilege('reader', 'totals', 'select'),"
        " has_column_privilege('public', 'totals', 'n', 'select')"
    ).fetchone() == ("sums", "all of it", "key", True, True)
    assert app.execute(
        "select attstattarget, reloptions::text from pg_attribute join pg_class c on c.oid = attrelid"
        " where attrelid = 'totals'::regclass and attname = 'total'"
    ).fetchone() == (77, "{fillfactor=80}")
    assert app.execute("select 'rich'::regclass::oid").fetchone() == before
    assert app.execute("select * from richest").fetchall() == [(1,)]


def test_renamed_columns_keep_their_names(orders, app, connection):
    app.execute(
        'create materialized view totals("Who", t) as select customer, sum(amount) from orders group by 1'
    )
    app.execute("alter materialized view totals rename column t to total")
    adopt(app)
    assert_same_bag(app, "select * from totals", find(connection, "totals").query)
    assert app.execute('select "Who", total from totals order by 1').fetchall() == [(1, 15), (2, 7)]


def test_a_rollback_leaves_the_materialized_view(view, app, connection):
    with app.transaction(force_rollback=True):
        adopt(app)
        assert kind(app) == "r"
    assert kind(app) == "m"
    assert stream_tables(connection) == ()
    app.execute("refresh materialized view totals")


@pytest.mark.parametrize(
    ("arrange", "name", "error", "says"),
    [
        ("select 1", "nothing", UnknownRelation, "there is no materialized view nothing"),
        ("create view v as select 1 as one", "v", WrongKind, "v is not a materialized view"),
        ("select 1", "orders", WrongKind, "orders is not a materialized view"),
        ("refresh materialized view totals with no data", "totals", WrongState, "has not been populated"),
        (
            "create materialized view upper as select n from totals",
            "totals",
            StillInUse,
            r"cannot adopt public\.totals, .* materialized view public\.upper",
        ),
        (
            "create function f() returns setof totals language sql as 'select * from totals'",
            "totals",
            StillInUse,
            r"function public\.f\(\)",
        ),
    ],
)
def test_what_cannot_be_adopted_is_refused_with_the_reason(view, app, arrange, name, error, says):
    app.execute(arrange)
    with pytest.raises(psycopg.Error, match=says) as refusal:
        adopt(app, name)
    assert refusal.value.sqlstate == error.sqlstate
    assert refusal.value.diag.message_hint
    assert kind(app) == "m"


def test_untrusted_code_volatile_functions_and_hidden_rows_are_refused(orders, app, admin):
    app.execute("create function own(n int) returns int immutable language sql return n + 1")
    app.execute("create materialized view coded as select own(id) as n from orders")
    app.execute("create materialized view moody as select id, random() as r from orders")
    admin.execute("create table hidden(id int); alter table hidden owner to app")
    app.execute(
        "grant select, trigger on hidden to trickle; create materialized view seen as select id from hidden"
    )
    app.execute("alter table hidden enable row level security; alter table hidden force row level security")
    for name, says in (
        ("coded", "rights of the sidecar"),
        ("moody", "volatile"),
        ("seen", "row-level security"),
    ):
        with pytest.raises(psycopg.Error, match=says) as refusal:
            adopt(app, name)
        assert refusal.value.diag.message_hint
        if name == "coded":
            assert refusal.value.sqlstate == UntrustedCode.sqlstate


def test_only_the_owner_itself_adopts(view, app, admin, database):
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="you must own") as refusal:
        adopt(admin)
    assert refusal.value.diag.message_hint == (
        f"The stream table keeps the owner. Connect as {APP}, or run: set role {APP}."
    )
    admin.execute(f"set role {APP}")
    adopt(admin)
    assert kind(app) == "r"


def test_stream_tables_over_the_materialized_view_read_the_stream_table(view, app, connection):
    app.execute("grant select on totals to trickle")
    app.execute("select pgtrickle.create_stream_table('top', 'select max(total) as most from totals')")
    adopt(app)
    assert app.execute("select source_table, source_type from pgtrickle.list_sources('top')").fetchall() == [
        ("public.totals", "stream_table")
    ]
    top = find(connection, "top")
    assert (top.reinit_reason, top.last_error) == ("public.totals was replaced", None)
    connection.commit()
    assert settle(connection, top.id, waits=True)
    assert find(connection, "top").ground_error is None


def test_a_layer_of_materialized_views_is_adopted_from_the_top(view, app, connection):
    app.execute("grant select on totals to trickle")
    app.execute("create materialized view upper as select sum(total) as s from totals")
    adopt(app, "upper")
    adopt(app, "totals")
    assert app.execute("select source_type from pgtrickle.list_sources('upper')").fetchall() == [
        ("stream_table",)
    ]
    upper = find(connection, "upper")
    connection.commit()
    assert settle(connection, upper.id, waits=True)
    assert [table.ground_error for table in stream_tables(connection)] == [None, None]


def test_two_who_adopt_at_once_get_one_stream_table(view, app, database, connection):
    with closing(database.connect(APP)) as first, closing(database.connect(APP, autocommit=True)) as second:
        adopt(first)
        failures: list[psycopg.Error] = []

        def too_late() -> None:
            try:
                adopt(second)
            except psycopg.Error as error:
                failures.append(error)

        thread = threading.Thread(target=too_late)
        thread.start()
        first.commit()
        thread.join(90)
        assert not thread.is_alive()
    assert len(failures) == 1
    assert len(stream_tables(connection)) == 1
