"""A stream table equals its query over a database in which nothing of ours exists."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.model.comparison import VerifiedTable
from pgtrickle.model.errors import Diverged
from pgtrickle.model.stream_table import Action
from pgtrickle.scheduler.service.compare import compare
from pgtrickle.scheduler.service.load_definitions import load_graph
from tests.attached.conftest import ALIAS, refresh_by_name
from tests.attached.log.conftest import Logged

pytestmark = [pytest.mark.database, pytest.mark.slow]

JOINED = (
    "select c.id, c.name, sum(o.amount) as total, count(*) as orders"
    " from public.orders o join crm.public.customers c on c.id = o.customer group by c.id, c.name"
)


@pytest.fixture
def joined(attached: Logged, app):
    app.execute("create table orders (id int primary key, customer int, amount numeric(10,2))")
    app.execute("grant select, trigger on orders to trickle")
    attached.table("id int primary key, name text not null", "customers")
    attached.app.execute("insert into customers select g, 'c' || g from generate_series(1, 50) g")
    app.execute("insert into orders select g, g % 60, g from generate_series(1, 300) g")
    app.execute("select pgtrickle.create_stream_table('totals', %s)", (JOINED,))
    return attached


def refresh(attached: Logged):
    return refresh_by_name(attached.engine, "totals")


@pytest.mark.every_postgres
def test_a_join_over_two_databases_follows_changes_of_both(joined, app):
    refresh(joined)
    joined.check("totals", JOINED, "customers")
    for changes_there, change_here in (
        (
            [
                "update customers set name = name || '!' where id < 5",
                "delete from customers where id = 3",
                "insert into customers values (3, 'back')",
                "update customers set id = -id where id in (1, 3)",
                "update customers set id = 3 where id = -3",
            ],
            "update orders set amount = -amount where id < 9",
        ),
        (
            [
                "begin; delete from customers where id between 7 and 12;"
                " insert into customers values (8, 'eight');"
                " update customers set id = 7 where id = 8; savepoint s; delete from customers;"
                " rollback to s; insert into customers values (9, 'nine') on conflict do nothing; commit",
                "delete from customers where id = 9",
            ],
            "delete from orders where id % 7 = 0",
        ),
        (
            [
                "insert into customers select g, 'new' from generate_series(51, 70) g",
                "update customers set id = id + 1000 where id > 60",
            ],
            "insert into orders values (900, 1062, 1)",
        ),
    ):
        for change in changes_there:
            joined.app.execute(change)
        app.execute(change_here)
        outcome = refresh(joined)
        assert outcome.action is Action.DIFFERENTIAL, outcome
        joined.check("totals", JOINED, "customers")
    joined.follow(compares=True)


@pytest.mark.thorough
def test_a_transaction_that_commits_late_comes_with_its_commit(joined, app):
    refresh(joined)
    with joined.database.connect("app") as late:
        late.execute("update customers set name = 'late' where id = 3")
        joined.app.execute("update customers set name = 'early' where id = 4")
        refresh(joined)
        late.commit()
    assert refresh(joined).action is Action.DIFFERENTIAL
    joined.check("totals", JOINED, "customers")


def test_its_position_is_recorded_and_is_one_of_the_other_database(joined):
    refresh(joined)
    row = joined.local.execute(
        "select f.name, f.alias, f.frontier, f.position = t.position, f.position = d.position, d.cdc_mode"
        " from pgtrickle.attached_frontiers f, pgtrickle.attached_tables t, pgtrickle.attached_databases d"
    ).fetchone()
    assert row == ("public.totals", ALIAS, None, True, True, "wal")


def test_verify_compares_the_copy_with_the_other_database(joined):
    refresh(joined)
    with joined.engine.connection() as connection:
        table, graph = find(connection, "public.totals"), load_graph(connection)
    assert isinstance(compare(joined.engine, table, graph, None), VerifiedTable)
    (copy,) = joined.local.execute(
        "select to_regclass(pgtrickle_internal.copy_of(source_relid)) from pgtrickle.pgt_attached_tables"
    ).fetchone()
    joined.local.execute(f"delete from {copy} where id = 7")
    with pytest.raises(Diverged, match=r"the copy of crm\.public\.customers did not equal the table"):
        compare(joined.engine, table, graph, None)
    assert refresh(joined).action is Action.REINITIALIZE
    joined.check("totals", JOINED, "customers")
    joined.local.execute(f"delete from {copy} where id = 8")
    joined.app.execute("delete from customers where id = 8")
    assert refresh(joined).action is Action.REINITIALIZE
    joined.check("totals", JOINED, "customers")


def test_a_table_without_keys_and_a_query_without_columns(attached, app):
    attached.table("a int, b text", "bag", is_full=True)
    attached.app.execute("insert into bag values (1, 'x'), (1, 'x'), (null, null), (2, 'y')")
    queries = {
        "counted": "select count(*) as n from crm.public.bag",
        "rows_of_bag": "select a, b, a is null as is_null from crm.public.bag",
    }
    for name, query in queries.items():
        app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))
        refresh_by_name(attached.engine, name)
        attached.check(name, query, "bag")
    for change in (
        "delete from bag where ctid = (select min(ctid) from bag where a = 1)",
        "insert into bag select null, null from generate_series(1, 3)",
        "update bag set b = 'z' where a is null",
        "delete from bag",
    ):
        attached.app.execute(change)
        for name, query in queries.items():
            refresh_by_name(attached.engine, name)
            attached.check(name, query, "bag")
    attached.follow(compares=True)
