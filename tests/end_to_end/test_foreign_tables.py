"""Foreign tables as sources: compared with a copy at each refresh, whatever changed them."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.commands.explain import explain
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from pgtrickle.model.errors import RefreshFailed, SourceChanged
from pgtrickle.model.stream_table import Action
from pgtrickle.scheduler.policy.due import COMPARE_INTERVAL, due
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.servers import SYSTEM
from tests.scheduler.states import board

# the embedded PostgreSQL ships no foreign data wrapper
pytestmark = pytest.mark.on_postgres(SYSTEM)

CHANGES = (
    (
        "update remote.orders set amount = amount + 1 where id <= 2",
        "delete from remote.orders where id = 4",
        "update customers set name = 'Ann again' where id = 1",
    ),
    (
        "insert into remote.orders values (4, 2, 7.50, null), (4, 2, 7.50, null), (5, null, -1, '[]')",
        "delete from customers where id = 2",
        "insert into customers values (3, 'Cid')",
    ),
    ("update remote.orders set customer = 3 where customer = 2", "delete from remote.orders where id = 5"),
    ("delete from remote.orders",),
    ("insert into remote.orders values (1, 1, 1.0, '{}')",),
)

QUERIES = {
    "rows": "select id, amount, doc::text as doc from orders",
    "no column": "select count(*) as n from orders",
    "join": "select o.id, o.amount, c.name from orders o join customers c on c.id = o.customer",
    "outer join": "select c.name, o.id from customers c left join orders o on o.customer = c.id",
    "group": "select customer, count(*) as n, sum(amount) as s, max(amount) from orders group by customer",
    "first rows": "select id, amount from orders order by amount desc nulls last, id limit 2",
    "not in": "select name from customers where id not in (select customer from orders where id < 5)",
}


@pytest.fixture
def orders(source, app, admin, server, database):
    """A foreign table `orders`, which leads to a table of the same database, over a connection of its own."""
    source("customers(id int primary key, name text)", rows=[(1, "Ann"), (2, "Bob")])
    for statement in (
        "create extension postgres_fdw",
        "create server there foreign data wrapper postgres_fdw"
        f" options (host '127.0.0.1', port '{server.port}', dbname '{database.name}')",
        f"grant usage on foreign server there to {APP}",
        f"create user mapping for public server there options (user '{APP}', password '{server.password}')",
        f"create schema remote authorization {APP}",
    ):
        admin.execute(statement)
    app.execute("create table remote.orders (id int, customer int, amount numeric(12,2), doc json)")
    app.execute("insert into remote.orders values (1, 1, 10, '{}'), (2, 1, 5.25, null), (4, 2, null, '[1]')")
    app.execute(
        "create foreign table orders (id int not null, customer int, amount numeric(12,2), doc json)"
        " server there options (schema_name 'remote', table_name 'orders')"
    )
    app.execute(f"grant select on orders to {TRICKLE}")


def change(app, *statements: str) -> None:
    with app.transaction():
        for statement in statements:
            app.execute(statement)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_stream_table_follows_a_foreign_table(orders, app, stream_table, query):
    table = stream_table(query, mode="DIFFERENTIAL")
    for statements in CHANGES:
        change(app, *statements)
        outcome = table.refresh()
        assert outcome.action in (Action.DIFFERENTIAL, Action.NO_DATA), outcome.reason
        table.equals_its_query()
    assert table.refresh().action is Action.NO_DATA


@pytest.mark.light
def test_stream_tables_follow_a_foreign_table_at_different_times(orders, app, stream_table, engine):
    often = stream_table("select id, amount from orders", mode="DIFFERENTIAL")
    seldom = stream_table("select customer, count(*) as n from orders group by customer")
    for statements in CHANGES:
        change(app, *statements)
        assert often.refresh().action is Action.DIFFERENTIAL
        often.equals_its_query()
    assert seldom.refresh().action is Action.DIFFERENTIAL
    seldom.equals_its_query()
    verify(engine, None)


def test_what_is_recomputed_reads_the_copy_too(orders, app, stream_table, engine):
    table = stream_table("select id, amount from orders", mode="FULL")
    for statements in CHANGES:
        change(app, *statements)
        assert table.refresh().action is Action.FULL
        table.equals_its_query()
        verify(engine, table.name)
    assert table.refresh().action is Action.NO_DATA


def test_a_promise_of_a_foreign_table_is_not_relied_on(orders, app, stream_table):
    table = stream_table("select name from customers where id not in (select id from orders)")
    change(
        app, "insert into remote.orders values (null, 1, 1, null)", "insert into customers values (9, 'Eve')"
    )
    table.refresh()
    assert table.rows() == []


def test_a_foreign_server_that_is_down_loses_nothing(orders, app, admin, server, stream_table):
    table = stream_table("select id, amount from orders", mode="DIFFERENTIAL")
    before = sorted(table.rows(), key=repr)
    change(app, *CHANGES[0])
    admin.execute("alter server there options (set port '1')")
    with pytest.raises(RefreshFailed, match=r'foreign table public\.orders .* server "there"') as failure:
        table.refresh()
    assert "foreign server" in str(failure.value.hint)
    assert server.password not in str(failure.value)
    assert sorted(table.rows(), key=repr) == before
    change(app, *CHANGES[1])
    admin.execute(f"alter server there options (set port '{server.port}')")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_failed_source_fails_only_who_reads_it(orders, app, admin, server, stream_table, engine):
    broken = stream_table("select id from orders")
    sound = stream_table("select id from customers")
    change(app, *CHANGES[1])
    admin.execute("alter server there options (set port '1')")
    with pytest.raises(RefreshFailed):
        refresh(engine, broken.name)
    assert refresh(engine, sound.name).action is Action.DIFFERENTIAL
    row = app.execute("select status, last_error from pgtrickle.stream_tables_info where status = 'ERROR'")
    assert "public.orders cannot be compared" in str(row.fetchone())
    admin.execute(f"alter server there options (set port '{server.port}')")
    assert refresh(engine, broken.name).action is Action.DIFFERENTIAL
    broken.equals_its_query()


def test_a_foreign_table_that_was_altered_is_followed_anew(orders, app, stream_table):
    altered = stream_table("select id, amount from orders")
    other = stream_table("select customer from orders", mode="DIFFERENTIAL")
    change(app, *CHANGES[0], "alter foreign table orders alter column amount type numeric(14,3)")
    assert altered.refresh().action is Action.REINITIALIZE
    altered.equals_its_query()
    assert other.refresh().action is Action.DIFFERENTIAL
    other.equals_its_query()
    change(app, *CHANGES[1], "alter foreign table orders drop column doc")
    assert other.refresh().action is Action.DIFFERENTIAL
    other.equals_its_query()
    app.execute("drop foreign table orders")
    with pytest.raises(SourceChanged, match=r"foreign table public\.orders was dropped"):
        other.refresh()


def test_explain_tells_that_the_whole_table_is_read(orders, stream_table, engine):
    text = explain(engine, stream_table("select id from orders").name).text
    assert "public.orders: compared with pgtrickle_state.copy_of_" in text
    assert "the whole table is read each time" in text


@pytest.mark.parametrize("schedule", ["1h", "calculated"])
def test_the_scheduler_looks_when_its_time_has_come(orders, app, stream_table, engine, schedule):
    table = stream_table("select id from orders")
    app.execute("select pgtrickle.alter_stream_table(%s, schedule => %s)", (table.name, schedule))
    with engine.connection() as connection:
        seen = board(connection)
    (candidate,) = seen.candidates()
    assert candidate.last_refresh_at is not None
    interval = COMPARE_INTERVAL if schedule == "calculated" else COMPARE_INTERVAL * 60
    graph = seen.definitions.graph
    assert not due([candidate], candidate.last_refresh_at + interval * 0.9, graph)
    assert due([candidate], candidate.last_refresh_at + interval, graph) == (candidate.id,)


def test_a_role_without_a_user_mapping_is_refused(orders, app, admin, server):
    admin.execute("drop user mapping for public server there")
    admin.execute(
        f"create user mapping for {TRICKLE} server there options (user '{APP}', password '{server.password}')"
    )
    with pytest.raises(psycopg.Error, match="user mapping not found"):
        app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
