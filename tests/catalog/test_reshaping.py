"""A stream table gets a query with other columns: what it keeps, what it loses, and what forbids it."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg
import pytest

from pgtrickle.catalog.dependencies import settle
from pgtrickle.catalog.tables import find, stream_tables
from pgtrickle.model.errors import CyclicStreamTables, PermissionDenied, StillInUse
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import APP
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.every_postgres

QUERY = "select id, customer, amount from orders"


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount numeric(8, 2), note text)",
        rows=[(1, 1, 10, "a"), (2, 1, 5, "b"), (3, 2, 7, None)],
    )


@pytest.fixture(autouse=True)
def roles(admin):
    """Roles that hold grants; a server keeps them for all its databases."""
    for role in ("reader", "clerk", "curious"):
        admin.execute(f"do $$ begin create role {role}; exception when duplicate_object then null; end $$")


@pytest.fixture
def sales(orders, app):
    app.execute("select pgtrickle.create_stream_table('sales', %s)", (QUERY,))
    return "sales"


def alter(app: psycopg.Connection, query: str, name: str = "sales") -> None:
    app.execute("select pgtrickle.alter_stream_table(%s, query => %s)", (name, query))


def columns(app: psycopg.Connection, table: str = "sales") -> list[str]:
    rows = app.execute(
        "select format('%%s %%s', attname, format_type(atttypid, atttypmod)) from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum",
        (table,),
    ).fetchall()
    return [text for (text,) in rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id, customer, amount, note from orders", None),
        ("select id, amount from orders", ["id integer", "amount numeric(8,2)"]),
        (
            "select amount, id, customer from orders",
            ["amount numeric(8,2)", "id integer", "customer integer"],
        ),
        ("select id, customer as buyer, amount from orders", None),
        (
            "select id::bigint as id, customer, amount from orders",
            ["id bigint", "customer integer", "amount numeric(8,2)"],
        ),
        ("select id, customer, amount::numeric(12, 4) as amount from orders", None),
        ("select customer, sum(amount) as total, count(*) as n from orders group by customer", None),
    ],
    ids=["added", "removed", "reordered", "renamed", "retyped", "other digits", "all others"],
)
def test_a_query_with_other_columns_is_taken_and_its_rows_are_there_at_once(sales, app, query, expected):
    alter(app, query)
    if expected is not None:
        assert columns(app) == expected
    assert_same_bag(app, "select * from sales", query)


def test_a_rollback_brings_everything_back(sales, app, connection):
    before = app.execute("select 'sales'::regclass::oid").fetchone()
    with app.transaction(force_rollback=True):
        alter(app, "select id from orders")
    assert app.execute("select 'sales'::regclass::oid").fetchone() == before
    assert columns(app) == ["id integer", "customer integer", "amount numeric(8,2)"]
    assert "customer" in find(connection, "sales").query


def test_it_keeps_grants_comments_statistics_and_options(sales, app, admin):
    app.execute("grant select on sales to reader with grant option")
    app.execute("grant select (id, customer) on sales to clerk")
    app.execute("comment on table sales is 'all sales'; comment on column sales.amount is 'net'")
    app.execute("alter table sales alter column amount set statistics 321")
    app.execute("alter table sales alter column amount set (n_distinct = 5)")
    app.execute("alter table sales set (autovacuum_enabled = off)")
    app.execute("create statistics spread on id, amount from sales; comment on statistics spread is 'both'")
    alter(app, "select id, amount, note from orders")
    assert app.execute(
        "select has_table_privilege('reader', 'sales', 'select with grant option'),"
        " has_table_privilege('clerk', 'sales', 'select'),"
        " has_column_privilege('clerk', 'sales', 'id', 'select'),"
        " has_column_privilege('clerk', 'sales', 'amount', 'select')"
    ).fetchone() == (True, False, True, False)
    assert app.execute(
        "select obj_description('sales'::regclass, 'pg_class'), col_description('sales'::regclass, 2),"
        " (select obj_description(oid, 'pg_statistic_ext') from pg_statistic_ext where stxname = 'spread'"
        "  and stxrelid = 'sales'::regclass)"
    ).fetchone() == ("all sales", "net", "both")
    assert app.execute(
        "select attstattarget, attoptions::text, reloptions::text"
        " from pg_attribute join pg_class c on c.oid = attrelid"
        " where attrelid = 'sales'::regclass and attname = 'amount'"
    ).fetchone() == (321, "{n_distinct=5}", "{autovacuum_enabled=off}")


def test_default_privileges_give_nobody_more_than_before(sales, app, admin):
    admin.execute(f"alter default privileges for role {APP} grant select on tables to curious")
    alter(app, "select id from orders")
    assert app.execute("select has_table_privilege('curious', 'sales', 'select')").fetchone() == (False,)


def test_it_keeps_indexes_and_constraints_whose_columns_remain(sales, app):
    app.execute("create index by_amount on sales (amount desc) include (id) where amount > 0")
    app.execute("create unique index by_id on sales (id); comment on index by_id is 'one each'")
    app.execute("create index by_customer on sales (customer)")
    app.execute('alter table sales add constraint "Positive" check (amount > 0)')
    app.execute("alter table sales add constraint whole unique (id, amount)")
    notices: list[str] = []
    app.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    alter(app, "select amount, id, note from orders")
    assert notices == ["public.sales loses: index by_customer (it uses column customer)"]
    definitions = [
        text
        for (text,) in app.execute(
            "select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'sales'::regclass order by 1"
        )
    ]
    assert definitions == [
        "CREATE INDEX by_amount ON public.sales USING btree (amount DESC) INCLUDE (id)"
        " WHERE (amount > (0)::numeric)",
        "CREATE INDEX sales_pgtrickle_row ON public.sales USING btree"
        " (hash_record_extended(ROW(amount, id, note), (0)::bigint))",
        "CREATE UNIQUE INDEX by_id ON public.sales USING btree (id)",
        "CREATE UNIQUE INDEX whole ON public.sales USING btree (id, amount)",
    ]
    assert app.execute("select obj_description('by_id'::regclass, 'pg_class')").fetchone() == ("one each",)
    assert app.execute(
        "select array_agg(conname::text order by conname) from pg_constraint"
        " where conrelid = 'sales'::regclass and contype in ('c', 'u')"
    ).fetchone() == (["Positive", "whole"],)


def test_it_keeps_views_with_their_grants_options_and_dependants(sales, app, admin):
    app.execute("create view small with (security_barrier) as select id, amount from sales where amount < 8")
    app.execute("create view smaller as select id from small where amount < 6")
    app.execute("grant select on small to reader; comment on view small is 'less'")
    before = app.execute("select 'small'::regclass::oid, 'smaller'::regclass::oid").fetchone()
    alter(app, "select note, amount, id from orders")
    assert app.execute("select 'small'::regclass::oid, 'smaller'::regclass::oid").fetchone() == before
    assert app.execute("select id from smaller").fetchall() == [(2,)]
    assert app.execute(
        "select has_table_privilege('reader', 'small', 'select'), obj_description('small'::regclass),"
        " (select reloptions::text from pg_class where oid = 'small'::regclass)"
    ).fetchone() == (True, "less", "{security_barrier=true}")


def test_it_keeps_triggers_policies_and_publications(sales, app, admin):
    admin.execute("create function noted() returns trigger language plpgsql as 'begin return null; end'")
    admin.execute(f"grant create on database {app.info.dbname} to {APP}")
    app.execute("create trigger noting after insert on sales for each statement execute function noted()")
    app.execute("alter table sales disable trigger noting")
    app.execute("create policy own on sales for select to app using (amount > 0)")
    app.execute("create publication news for table sales where (amount > 1)")
    alter(app, "select id, amount from orders")
    assert app.execute(
        "select tgenabled from pg_trigger where tgrelid = 'sales'::regclass and tgname = 'noting'"
    ).fetchone() == ("D",)
    assert app.execute("select policyname, cmd, qual from pg_policies").fetchall() == [
        ("own", "SELECT", "(amount > (0)::numeric)")
    ]
    assert app.execute("select tablename, rowfilter from pg_publication_tables").fetchall() == [
        ("sales", "(amount > (1)::numeric)")
    ]


def test_everything_that_would_break_is_named_before_anything_happens(sales, app, admin):
    app.execute("create view by_customer as select customer from sales")
    app.execute("create view lines as select sales::text as line from sales")
    app.execute("create materialized view kept as select id from sales")
    app.execute("select pgtrickle.create_stream_table('top', 'select customer from sales')")
    app.execute("create function all_of() returns setof sales language sql as 'select * from sales'")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as refusal:
        alter(app, "select id, amount from orders")
    message = refusal.value.diag.message_primary or ""
    assert message.startswith("cannot give other columns to public.sales, because this would break: ")
    for part in (
        "function public.all_of() (it depends on the table itself)",
        "materialized view public.kept (it would have to be created again)",
        "stream table public.top (it reads column customer)",
        "view public.by_customer (it reads column customer)",
        "view public.lines (it reads whole rows)",
    ):
        assert part in message
    assert refusal.value.sqlstate == StillInUse.sqlstate
    assert columns(app) == ["id integer", "customer integer", "amount numeric(8,2)"]


def test_a_view_of_another_role_is_named_with_its_owner(sales, app, admin):
    admin.execute("create view foreign_view as select id from sales")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="only its owner"):
        alter(app, "select id from orders")


def test_stream_tables_that_read_what_remains_are_bound_to_the_new_table(sales, app, connection):
    app.execute("create view few as select id from sales")
    app.execute("select pgtrickle.create_stream_table('ids', 'select id from few')")
    app.execute("select pgtrickle.create_stream_table('sums', 'select sum(amount) as s from sales')")
    old = app.execute("select 'sales'::regclass::oid").fetchone()
    alter(app, "select note, amount, id from orders")
    new = app.execute("select 'sales'::regclass::oid").fetchone()
    assert old != new
    assert app.execute(
        "select array_agg(distinct source_relid) from pgtrickle.pgt_dependencies"
        " where source_type = 'stream_table'"
    ).fetchone() == ([new[0]],)
    for name in ("ids", "sums"):
        assert find(connection, name).reinit_reason == "public.sales was replaced"
        table = find(connection, name)
        connection.commit()
        assert settle(connection, table.id, waits=True)
    captured = connection.execute(
        "select source_relid from pgtrickle.pgt_sources where %s = source_relid", (new[0],)
    ).fetchall()
    assert captured == [(new[0],)]
    assert [(table.last_error, table.ground_error) for table in stream_tables(connection)] == [
        (None, None)
    ] * 3


def test_names_of_every_kind_survive(orders, app, admin):
    admin.execute('create schema "My Shop" authorization app; grant usage on schema "My Shop" to trickle')
    name = '"My Shop"."x""; drop table y; --"'
    app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, QUERY))
    app.execute(f'create index "Odd ""one" on {name} (("amount" + 1))')
    app.execute(f'create view "My Shop"."V 1" as select amount from {name}')
    alter(app, 'select amount, note as "Note (new)" from orders', name)
    assert columns(app, name) == ["amount numeric(8,2)", "Note (new) text"]
    assert app.execute('select count(*) from "My Shop"."V 1"').fetchone() == (3,)
    assert app.execute(
        "select count(*) from pg_class where relname ~ '^pgtrickle_(part_|[0-9a-f]{32})'"
    ).fetchone() == (0,)
    assert app.execute("select count(*) from pg_class where relname = 'Odd \"one'").fetchone() == (1,)


def test_a_table_may_not_read_itself(sales, app):
    with pytest.raises(psycopg.errors.InvalidRecursion) as refusal:
        alter(app, "select id from sales")
    assert refusal.value.sqlstate == CyclicStreamTables.sqlstate
    app.execute("select pgtrickle.create_stream_table('top', 'select id from sales')")
    with pytest.raises(psycopg.errors.InvalidRecursion):
        alter(app, "select id, 1 as one from top")


def test_a_refused_query_is_not_evaluated(sales, app):
    app.execute("create sequence counted")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        alter(app, "select nextval('counted') as n from orders")
    assert app.execute("select is_called from counted").fetchone() == (False,)


def test_only_the_owner_may_do_it(sales, admin, database):
    admin.execute("grant select on sales, orders to trickle")
    with (
        closing(database.connect(autocommit=True)) as other,
        pytest.raises(psycopg.errors.InsufficientPrivilege) as refusal,
    ):
        alter(other, "select id from orders")
    assert refusal.value.sqlstate == PermissionDenied.sqlstate


def test_readers_go_on_while_it_waits_for_a_long_reader(sales, app, database):
    """A lock that is waited for would let all later readers queue behind it."""
    with closing(database.connect(APP)) as slow, closing(database.connect(APP, autocommit=True)) as altering:
        slow.execute("select * from sales")
        thread = threading.Thread(target=alter, args=(altering, "select id from orders"))
        thread.start()
        eventually(lambda: _is_waiting(app, altering))
        app.execute("set statement_timeout = '2s'")
        for _ in range(20):
            app.execute("select count(*) from sales")
        slow.commit()
        thread.join(90)
        assert not thread.is_alive()
    assert columns(app) == ["id integer"]


def _is_waiting(app: psycopg.Connection, other: psycopg.Connection) -> bool:
    row = app.execute(
        "select wait_event from pg_stat_activity where pid = %s", (other.info.backend_pid,)
    ).fetchone()
    return row is not None and row[0] in ("PgSleep", "relation")


def test_two_who_alter_at_once_follow_each_other(sales, app, database):
    with closing(database.connect(APP)) as first, closing(database.connect(APP, autocommit=True)) as second:
        alter(first, "select id from orders")
        thread = threading.Thread(target=alter, args=(second, "select id, note from orders"))
        thread.start()
        eventually(lambda: _is_waiting(app, second))
        first.commit()
        thread.join(90)
        assert not thread.is_alive()
    assert columns(app) == ["id integer", "note text"]


def test_create_or_replace_takes_other_columns_too(sales, app):
    app.execute(
        "select pgtrickle.create_or_replace_stream_table('sales', 'select note, id from orders', '5s')"
    )
    assert columns(app) == ["note text", "id integer"]
