"""SQL says of a query what can be known without compiling it, and leaves nothing behind."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.every_postgres


@pytest.fixture(autouse=True)
def orders(source):
    source("orders(id int primary key, amount int, note json)", rows=[(1, 10, None)])


def checks(connection: psycopg.Connection, query: str | None) -> list[tuple[str, str, str]]:
    rows = connection.execute("select * from pgtrickle.validate_query(%s)", (query,)).fetchall()
    assert rows[0][0] == "resolved_refresh_mode"
    return rows


def test_a_plain_query_is_differential(app):
    assert checks(app, "select id, sum(amount) as total from orders group by id") == [
        ("resolved_refresh_mode", "DIFFERENTIAL", "INFO"),
        ("reason", "every part of it can be followed", "INFO"),
        ("output_column", "id integer", "INFO"),
        ("output_column", "total bigint", "INFO"),
        ("source", "public.orders", "INFO"),
        ("aggregate", "sum", "INFO"),
        ("volatility", "immutable", "INFO"),
    ]


def test_what_only_the_compiler_knows_is_undecided(app):
    found = checks(app, "select id from orders order by id limit 3")
    assert found[0] == ("resolved_refresh_mode", "UNDECIDED", "WARNING")
    assert "`pgtrickle validate` compiles the query" in found[1][1]


def test_a_stream_table_with_the_same_query_decides(app, admin):
    query = "select id from orders order by id limit 3"
    app.execute("select pgtrickle.create_stream_table('firsts', %s)", (query,))
    assert checks(app, query)[0][1] == "UNDECIDED"
    admin.execute(
        "update pgtrickle.pgt_stream_tables set effective_refresh_mode = 'FULL', downgrade_reason = 'so'"
    )
    assert checks(app, query)[:2] == [
        ("resolved_refresh_mode", "FULL", "WARNING"),
        ("reason", "so", "INFO"),
    ]


def test_a_security_barrier_is_recomputed(app):
    app.execute("create view hidden with (security_barrier) as select id from orders where amount > 0")
    app.execute("grant select on hidden to trickle")
    assert checks(app, "select id from hidden")[0][1] == "FULL"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select id frm orders", 'syntax error at or near "orders" (42601)'),
        ("select nope from orders", 'column "nope" does not exist (42703)'),
        ("delete from orders", "the query is not a single SELECT (42601)"),
        ("", "the query is empty (42601)"),
        (None, "the query is empty (42601)"),
        ("select random() as r from orders", "the query calls the volatile function random() (0A000)"),
        ("select id, id from orders", 'column "id" specified more than once (42701)'),
    ],
)
def test_a_query_that_cannot_be_a_stream_table_is_refused_with_the_reason(app, query, error):
    found = checks(app, query)
    assert found[0] == ("resolved_refresh_mode", "REFUSED", "ERROR")
    assert found[1] == ("error", error, "ERROR")


def test_missing_grants_are_statements(app, admin):
    admin.execute("create table secrets(word text)")
    found = checks(app, "select word from secrets")
    assert found[0][1] == "REFUSED"
    app.execute("create table mine(id int)")
    found = checks(app, "select id from mine")
    assert ("missing_grant", "grant select on public.mine to trickle", "ERROR") in found
    assert ("missing_grant", "grant trigger on public.mine to trickle", "ERROR") in found
    assert not [row for row in found if row[0] == "error"]


def test_nothing_is_left_and_no_lock_is_kept(connect, admin):
    session = connect("app")
    checks(session, "select id from orders")
    # other sessions can write and alter meanwhile
    admin.execute(
        "set lock_timeout = '5s'; alter table orders add column extra int; insert into orders values (2)"
    )
    session.commit()
    left = (
        "select (select count(*) from pgtrickle.pgt_stream_tables), (select count(*) from pg_trigger"
        " where tgrelid = 'orders'::regclass), (select count(*) from pg_class where relname ~ '^pgtrickle_')"
    )
    assert admin.execute(left).fetchone() == (0, 0, 0)


def test_it_works_in_a_transaction_that_rolls_back(connect):
    session = connect("app")
    session.execute("create table fresh(id int)")
    session.execute("grant select, trigger on fresh to trickle")
    assert checks(session, "select id from fresh")[0][1] == "DIFFERENTIAL"
    session.rollback()
    assert checks(session, "select id from fresh")[0][1] == "REFUSED"
