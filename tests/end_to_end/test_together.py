"""Stream tables that are due together are refreshed as one, and each is right by itself."""

from __future__ import annotations

import threading

import pytest

from pgtrickle.apply.guard import open_guard
from pgtrickle.catalog.tables import find
from pgtrickle.changes import read, shared_windows
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.pipeline import programs
from pgtrickle.refresh import waves
from pgtrickle.refresh.execute import side_by_side
from pgtrickle.refresh.story import Failure, refresh_all
from tests.fixtures.stream_tables import StreamTable

CHANGES = (
    ("update orders set amount = amount + 1 where id = 3",),
    ("insert into orders values (5, 3, 17), (6, 3, null)", "update orders set customer = 3 where id = 1"),
    ("delete from orders where id = 2", "insert into orders values (2, 1, 5)"),
    ("delete from orders where customer = 3", "insert into orders values (7, null, 2)"),
    ("insert into orders select n, n % 4, n from generate_series(100, 130) n",),
    ("delete from orders",),
)


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)",
        rows=[(1, 1, 10), (2, 1, 5), (3, 2, 7), (4, None, 1)],
    )


@pytest.fixture
def refreshed(engine):
    """Refreshes stream tables together, as one group of the scheduler."""

    def together(tables, *, waits=True):
        with engine.connection() as connection:
            ids = [find(connection, table.name).id for table in tables]
        return refresh_all(engine, ids, initiated_by="test", waits=waits)

    return together


@pytest.fixture
def counted(monkeypatch):
    """How often a function of a module was called."""

    def count(module, name):
        calls = []
        function = getattr(module, name)

        def counting(*args, **kwargs):
            calls.append(args)
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)
        return calls

    return count


def jobs(spark):
    return spark.small.sparkContext._jsc.sc().dagScheduler().numTotalJobs()


def all_right(tables, results):
    for table in tables:
        table.equals_its_query()
    assert {result.action for result in results} <= {Action.DIFFERENTIAL, Action.NO_DATA}


@pytest.mark.light
def test_a_chain_of_ten_follows_through_filters_joins_and_groups(orders, source, stream_table, refreshed):
    source("names(customer int primary key, name text)", rows=[(1, "a"), (2, "b"), (3, "b")])
    queries = [
        "select id, customer, amount from orders where amount is distinct from 5",
        "select id, customer, amount + 1 as amount from {below}",
        "select b.id, b.customer, b.amount, n.name from {below} b left join names n using (customer)",
        "select name, customer, sum(amount) as total, count(*) as n from {below} group by name, customer",
        "select name, customer, total, n from {below} where n > 0",
        "select distinct name, n from {below}",
        "select name, count(*) as k, max(n) as m from {below} group by name",
        "select k, m, name from {below} union all select n, n, name from {two_below}",
        "select b.k, o.id from {below} b join orders o on o.id = b.k",
        "select count(*) as n, min(id) as first from {below}",
    ]
    tables: list[StreamTable] = []
    for query in queries:
        below = tables[-1].name if tables else ""
        two_below = tables[-2].name if len(tables) > 1 else ""
        tables.append(stream_table(query.format(below=below, two_below=two_below), mode="DIFFERENTIAL"))
    for statements in CHANGES:
        orders.change(*statements)
        all_right(tables, refreshed(tables))
    orders.change("insert into orders values (1, 1, 1)", "update names set name = 'c' where customer = 1")
    all_right(tables, refreshed(tables))


def test_twenty_tables_read_a_window_once_and_need_no_job(orders, stream_table, refreshed, counted, spark):
    tables = [
        stream_table(
            f"select customer, amount * {n} as v from orders where amount > -{n}"
            if n % 2
            else f"select customer, sum(amount + {n}) as v, count(*) as n from orders group by customer",
            mode="DIFFERENTIAL",
        )
        for n in range(20)
    ]
    for number in range(3):
        orders.change(f"insert into orders values ({10 + number}, 1, {number})")
        all_right(tables, refreshed(tables))
    orders.change("update orders set amount = 3 where id = 1", "delete from orders where id = 4")
    shared, own = counted(side_by_side, "read_together"), counted(read, "read_query")
    counts, before = counted(waves, "pending_windows"), jobs(spark)
    results = refreshed(tables)
    assert jobs(spark) == before
    assert len(shared) == 1
    assert len(shared[0][1]) == 20
    assert own == []
    assert len(counts) == 1
    all_right(tables, results)


def test_a_diamond_whose_plans_are_kept_needs_no_job(orders, stream_table, refreshed, spark):
    arms = [
        stream_table(f"select customer, {value} as v from orders group by customer", mode="DIFFERENTIAL")
        for value in ("sum(amount)", "count(*)", "max(amount)", "min(amount)")
    ]
    a, b, c, d = (arm.name for arm in arms)
    top = stream_table(
        f"select a.customer, a.v as a, b.v as b, c.v as c, d.v as d from {a} a join {b} b using (customer)"
        f" join {c} c using (customer) join {d} d using (customer)",
        mode="DIFFERENTIAL",
    )
    tables = [*arms, top]
    for number in range(3):
        orders.change(f"update orders set amount = {100 + number} where id = 3")
        refreshed(tables)
    orders.change("update orders set amount = 200 where id = 3")
    before = jobs(spark)
    results = refreshed(tables)
    assert jobs(spark) == before
    all_right(tables, results)
    for statements in CHANGES:
        orders.change(*statements)
        all_right(tables, refreshed(tables))


def test_sharing_a_window_keeps_nulls_and_empty_texts_apart(source, stream_table, refreshed):
    notes = source("notes(id int primary key, text text, flag boolean, price numeric(8,2), at timestamptz)")
    tables = [
        stream_table("select id, text from notes", mode="DIFFERENTIAL"),
        stream_table("select text, flag, count(*) as n from notes group by text, flag", mode="DIFFERENTIAL"),
        stream_table("select at, price from notes where flag", mode="DIFFERENTIAL"),
        stream_table("select sum(price) as total from notes where text <> ''", mode="DIFFERENTIAL"),
    ]
    for statements in (
        ("insert into notes values (1, '', true, 1.50, now()), (2, null, null, null, null)",),
        ("insert into notes values (3, 'a,\"b\nc', false, 0.01, '-infinity'), (4, ' ', true, -9.99, now())",),
        ("update notes set text = null where text = ''", "update notes set text = '' where id = 2"),
        ("delete from notes where id > 1",),
    ):
        notes.change(*statements)
        all_right(tables, refreshed(tables))


def test_a_member_that_cannot_be_read_for_is_alone_to_blame(orders, stream_table, refreshed, admin):
    admin.execute(
        "create function picky(v int) returns int immutable language plpgsql as"
        " $$begin if v = 13 then raise exception 'unlucky'; end if; return v; end$$"
    )
    admin.execute("alter function picky(int) owner to trickle")
    good = stream_table("select customer, sum(amount) as total from orders group by customer")
    bad = stream_table("select id, picky(amount) as v from orders", mode="DIFFERENTIAL")
    above = stream_table(f"select count(*) as n from {bad.name}")
    beside = stream_table(f"select max(total) as most from {good.name}")
    tables = [good, bad, above, beside]
    orders.change("insert into orders values (13, 1, 13)")
    results = refreshed(tables)
    assert [type(result) for result in results] == [RefreshOutcome, Failure, RefreshOutcome, RefreshOutcome]
    assert "unlucky" in results[1].error.message
    assert results[2].action is Action.SKIP
    assert bad.name in results[2].reason
    for table in (good, beside):
        table.equals_its_query()
    admin.execute("create or replace function picky(v int) returns int immutable language sql as 'select v'")
    assert [result.action for result in refreshed(tables)] == [
        Action.NO_DATA,
        Action.REINITIALIZE,
        Action.DIFFERENTIAL,
        Action.NO_DATA,
    ]
    for table in tables:
        table.equals_its_query()


@pytest.mark.light
def test_a_member_that_cannot_be_applied_is_undone_alone(orders, stream_table, refreshed, app):
    good = stream_table("select customer, sum(amount) as total from orders group by customer")
    bad = stream_table("select id, amount from orders")
    app.execute(f"alter table {bad.name} add constraint small check (amount < 1000)")
    tables = [good, bad]
    orders.change("insert into orders values (5, 1, 1000)")
    first, second = refreshed(tables)
    assert first.action is Action.DIFFERENTIAL
    assert "small" in second.error.message
    good.equals_its_query()
    app.execute(f"alter table {bad.name} drop constraint small")
    results = refreshed(tables)
    assert [result.action for result in results] == [Action.NO_DATA, Action.DIFFERENTIAL]
    all_right(tables, results)


def test_a_member_that_fails_in_spark_fails_alone(orders, stream_table, refreshed):
    good = stream_table("select customer, count(*) as n from orders group by customer")
    bad = stream_table(
        "select o.id, (select p.amount from orders p where p.customer = o.customer) as other"
        " from orders o where o.customer = 2",
        mode="DIFFERENTIAL",
    )
    tables = [good, bad]
    for number in range(3):
        orders.change(f"update orders set amount = {number} where id = 3")
        all_right(tables, refreshed(tables))
    orders.change("insert into orders values (5, 2, 2)")
    first, second = refreshed(tables)
    assert first.action is Action.DIFFERENTIAL
    assert isinstance(second, Failure)
    good.equals_its_query()
    orders.change("delete from orders where id = 5")
    all_right(tables, refreshed(tables))


def test_a_member_that_another_session_has_is_left_out_with_those_above_it(
    orders, stream_table, refreshed, connect
):
    held = stream_table("select customer, sum(amount) as total from orders group by customer")
    above = stream_table(f"select max(total) as most from {held.name}")
    free = stream_table("select customer, count(*) as n from orders group by customer")
    tables = [held, above, free]
    orders.change("insert into orders values (5, 2, 2)")
    other = connect("trickle")
    other.execute(
        "select from pgtrickle.pgt_stream_tables where pgt_name = %s for no key update", (held.name,)
    )
    by_name = {result.name.name: result for result in refreshed(tables, waits=False)}
    assert by_name[held.name].action is Action.SKIP
    assert by_name[above.name].action is Action.SKIP
    assert by_name[free.name].action is Action.DIFFERENTIAL
    free.equals_its_query()
    other.rollback()
    all_right(tables, refreshed(tables, waits=False))


def test_a_truncated_source_moves_everything_above_it(orders, stream_table, refreshed):
    tables = [stream_table("select id, amount from orders where amount > 0")]
    tables.append(stream_table(f"select count(*) as n, sum(amount) as s from {tables[0].name}"))
    tables.append(stream_table("select customer, max(amount) as m from orders group by customer"))
    orders.change("truncate orders", "insert into orders values (1, 1, 1)")
    results = refreshed(tables)
    assert [result.action for result in results] == [Action.FULL, Action.DIFFERENTIAL, Action.FULL]
    for table in tables:
        table.equals_its_query()
    orders.change("insert into orders values (2, 2, 2)")
    all_right(tables, refreshed(tables))


def test_a_member_without_a_plan_yet_goes_with_those_that_have_one(orders, stream_table, refreshed, counted):
    tables = [stream_table("select customer, sum(amount) as s from orders group by customer")]
    for number in range(3):
        orders.change(f"insert into orders values ({20 + number}, 1, 1)")
        refreshed(tables)
    tables.append(stream_table("select amount, count(customer) as c from orders group by amount"))
    orders.change("update orders set amount = 8 where id = 1")
    planned = counted(programs, "plan_small")
    all_right(tables, refreshed(tables))
    assert len(planned) <= 1


def test_groups_are_refreshed_side_by_side(orders, source, stream_table, refreshed):
    others = source("others(id int primary key, customer int, amount int)")
    groups = []
    for table in ("orders", "others"):
        bottom = stream_table(f"select customer, sum(amount) as s from {table} group by customer")
        groups.append([bottom, stream_table(f"select max(s) as most from {bottom.name}")])
    errors = []

    def follow(tables):
        try:
            for _ in range(5):
                all_right_later.append((tables, refreshed(tables)))
        except Exception as error:
            errors.append(error)

    for number in range(3):
        orders.change(f"insert into orders values ({50 + number}, {number}, 5)")
        others.change(f"insert into others values ({50 + number}, {number}, 7)")
        all_right_later: list[object] = []
        threads = [threading.Thread(target=follow, args=(tables,)) for tables in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        for tables in groups:
            for table in tables:
                table.equals_its_query()


def test_the_guard_is_closed_after_a_wave(orders, stream_table, engine):
    table = stream_table("select customer, sum(amount) as total from orders group by customer")
    with engine.connection() as connection:
        with open_guard(connection, few=True):
            assert connection.execute("show pgtrickle.applying").fetchone() == ("on",)
        assert connection.execute("show pgtrickle.applying").fetchone() == ("off",)
        assert table.name


def test_a_window_is_read_in_portions_that_postgresql_can_answer(
    orders, stream_table, refreshed, monkeypatch
):
    monkeypatch.setattr(shared_windows, "MAX_COLUMNS", 4)
    tables = [
        stream_table(f"select id, customer, amount + {n} as v from orders", mode="DIFFERENTIAL")
        for n in range(3)
    ]
    orders.change("insert into orders values (5, 5, 5)", "delete from orders where id = 1")
    all_right(tables, refreshed(tables))
