"""A small change that reaches many rows: the path follows from what is read, and the memory is bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrickle.apply import temporary_rows
from pgtrickle.catalog.tables import find
from pgtrickle.changes import memory
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.refresh.decide import reaches
from pgtrickle.refresh.execute import apply_result, staging
from pgtrickle.refresh.story import refresh_all

QUERIES = {
    "join": "select f.id, f.amount, d.name from facts f join dims d on d.id = f.dim",
    "chain": "select d.name, f.id, l.id as line, l.qty from dims d join facts f on f.dim = d.id"
    " join lines l on l.fact = f.id",
    "outer": "select d.id, f.amount, l.qty from dims d left join facts f on f.dim = d.id"
    " left join lines l on l.fact = f.id",
    "groups": "select d.name, count(*) as n, sum(f.amount) as total, max(f.amount) as top, min(f.id) as low"
    " from facts f join dims d on d.id = f.dim group by d.name",
    "evaluated": "select d.name, string_agg(f.note, ',' order by f.id) as notes, stddev(f.amount) as spread"
    " from facts f join dims d on d.id = f.dim group by d.name",
    "inner groups": "select d.name, t.n, t.total from dims d join"
    " (select dim, count(*) as n, sum(amount) as total from facts group by dim) t on t.dim = d.id",
    "itself": "select a.id, b.id as other from facts a join facts b on a.dim = b.dim and a.amount = b.amount"
    " where a.id < b.id",
    "exists": "select d.name from dims d where exists (select from facts f join lines l on l.fact = f.id"
    " where f.dim = d.id and l.qty > 2)",
    "window": "select f.id, rank() over (partition by f.dim order by f.amount, f.id) as r from facts f",
    "recursion": "with recursive r(id, next) as (select id, amount from facts where dim = 1"
    " union select f.id, f.amount from facts f join r on r.next = f.id)"
    " select d.name, r.id from r join dims d on d.id = r.id % 3",
}

WINDOWS = (
    (
        "update dims set name = name || '!' where id = 1",
        "update facts set dim = 1 where id = 3",
        "delete from facts where id = 10",
        "insert into lines select 1000 + n, n, 9 from generate_series(1, 5) n",
    ),
    (
        "update dims set id = 7 where id = 2",
        "delete from dims where id = 1",
        "insert into facts values (5000, 7, 3, 'new'), (5001, null, null, null)",
        "update lines set fact = null where id = 5",
        "delete from lines where qty = 1",
    ),
)


@pytest.fixture
def facts(source, app):
    source("dims(id int primary key, name text)", rows=[(n, f"name {n}") for n in range(1, 4)])
    facts = source("facts(id int primary key, dim int, amount int, note text)")
    lines = source("lines(id int primary key, fact int, qty int)")
    facts.change(
        "create index on facts (dim)",
        "create index on lines (fact)",
        "insert into facts select n, 1 + n % 3, n % 20, 'note ' || n % 7 from generate_series(1, 200) n",
        "insert into lines select n, n / 2, n % 4 from generate_series(1, 400) n",
    )
    lines.change("analyze facts", "analyze lines", "analyze dims")
    return facts


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_whatever_is_reached_the_rows_are_right(facts, stream_table, engine, monkeypatch, query):
    """Each limit breaks off at another read, so that other reads have no keys in memory."""
    # what keeps inner results reads its own writes, which tasks do not see
    table = stream_table(query, mode="DIFFERENTIAL", auxiliary="never")
    # the pages of these tables are worth tasks here
    monkeypatch.setattr(staging, "FEW_PAGES", 1)
    monkeypatch.setattr("pgtrickle.changes.kept_rows.MAX_ROWS", 1)
    for most, statements in zip((100, 3), WINDOWS, strict=True):
        engine.large_reach = most
        facts.change(*statements)
        outcome = table.refresh()
        assert outcome.action is Action.DIFFERENTIAL
        table.equals_its_query()
    assert "spread over tasks, since it reaches more than 3 rows" in outcome.reason


@pytest.mark.light
def test_tables_that_go_together_are_bounded_too(facts, stream_table, engine, monkeypatch):
    """Nobody else sees what they read, so the driver passes it on in portions."""
    below = stream_table("select id, dim, amount from facts", name="below", mode="DIFFERENTIAL")
    above = {
        "rows": "select b.id, b.amount, d.name, l.qty from below b join dims d on d.id = b.dim"
        " left join lines l on l.fact = b.id",
        "groups": "select d.name, count(*) as n, max(b.amount) as top from below b"
        " join dims d on d.id = b.dim group by d.name",
        "evaluated": "select dim, string_agg(id::text, ',' order by id) as ids from below group by dim",
    }
    tables = [below, *(stream_table(query, mode="DIFFERENTIAL") for query in above.values())]
    monkeypatch.setattr(memory, "FREE", 0)
    monkeypatch.setattr("pgtrickle.changes.kept_rows.MAX_ROWS", 1)
    engine.memory_limit = 12_000
    with engine.connection() as connection:
        ids = [find(connection, table.name).id for table in tables]
    reasons = []
    for statements in WINDOWS:
        facts.change(*statements)
        for result in refresh_all(engine, ids, initiated_by="test", waits=True):
            assert isinstance(result, RefreshOutcome), result
            assert result.action in {Action.DIFFERENTIAL, Action.NO_DATA}, result
            reasons.append(result.reason)
        for table in tables:
            table.equals_its_query()
    assert any("spread over tasks" in reason for reason in reasons)
    assert engine.memory.held == 0
    # also where everything is loaded
    again = stream_table("select b.dim, count(*) as n, sum(b.amount) as s from below b group by b.dim")
    again.equals_its_query()


def test_reaches_of_a_thousand_to_a_hundred_thousand_rows_stay_within_the_limit(source, stream_table, engine):
    source("dims(id int primary key, name text)", rows=[(n, f"name {n}") for n in (3, 4, 5)])
    facts = source("facts(id int primary key, dim int, amount int)")
    facts.change(
        "insert into facts select n, case when n <= 1000 then 3 when n <= 8000 then 4 else 5 end, n % 100"
        " from generate_series(1, 108000) n",
        "create index on facts (dim)",
    )
    joined = stream_table(
        "select f.id, f.amount, d.name from facts f join dims d on d.id = f.dim", mode="DIFFERENTIAL"
    )
    totals = stream_table(
        "select d.name, sum(f.amount) as n from facts f join dims d on d.id = f.dim group by 1",
        mode="DIFFERENTIAL",
    )
    engine.memory_limit, engine.memory.peak = 4 << 20, 0
    for dim, is_spread in ((3, False), (4, False), (5, True)):
        facts.change(f"update dims set name = name || '!' where id = {dim}")
        for table in (joined, totals):
            outcome = table.refresh()
            assert outcome.action is Action.DIFFERENTIAL
            assert ("spread over tasks" in outcome.reason) is is_spread, outcome
            table.equals_its_query()
    assert engine.memory.peak <= engine.memory.share
    assert engine.memory.held == 0


def test_bytes_count_and_not_only_rows(source, stream_table, engine):
    """Few rows that are long, in a first load and in a change."""
    engine.memory_limit = 4 << 20
    source("kinds(id int primary key, name text)", rows=[(1, "one"), (2, "two")])
    pages = source("pages(id int primary key, kind int, body text)")
    pages.change(
        "insert into pages select n, 1 + n / 299, repeat(md5(n::text), 700) from generate_series(1, 300) n"
    )
    table = stream_table(
        "select p.id, p.body, k.name from pages p join kinds k on k.id = p.kind",
        mode="DIFFERENTIAL",
        loads=False,
    )
    assert "spread over tasks, since it reaches more than 2 MB" in table.refresh().reason
    table.equals_its_query()
    pages.change("update kinds set name = 'once' where id = 1")
    assert "spread over tasks, since it reaches more than 2 MB" in table.refresh().reason
    table.equals_its_query()
    pages.change("update kinds set name = 'twice' where id = 2")
    assert "spread" not in table.refresh().reason
    table.equals_its_query()
    assert engine.memory.peak <= engine.memory.share


def test_a_result_that_is_larger_than_what_was_read_does_not_come_back(source, stream_table, engine):
    engine.memory_limit = 4 << 20
    left = source("lefts(id int primary key, k int)", rows=[(0, 0)])
    source("rights(id int primary key, k int)", rows=[(0, 0)])
    table = stream_table(
        "select l.id as l, r.id as r from lefts l join rights r on l.k = r.k", mode="DIFFERENTIAL"
    )
    for _ in range(2):
        left.change(
            "insert into lefts select (select max(id) from lefts) + n, 1 from generate_series(1, 400) n",
            "insert into rights select (select max(id) from rights) + n, 1 from generate_series(1, 400) n",
        )
        outcome = table.refresh()
        assert "since it reaches a result of more than" in outcome.reason, outcome
        table.equals_its_query()
    left.change("delete from rights where id % 2 = 0")
    table.refresh()
    table.equals_its_query()


def test_more_rows_than_parameters_should_have_are_copied(facts, stream_table, engine, monkeypatch):
    """Also the groups whose extremum is found again, in portions."""
    tables = [
        stream_table("select id, dim, min(amount) as low, max(note) as last from facts group by id, dim"),
        stream_table("select dim, string_agg(note, ',' order by id) as notes from facts group by dim"),
        stream_table("select id, note from facts"),
    ]
    monkeypatch.setattr(temporary_rows, "MANY_ROWS", 2)
    monkeypatch.setattr(apply_result, "MANY_ROWS", 7)
    for statement in ("update facts set amount = amount + 1, note = 'a' || note", "delete from facts"):
        facts.change(statement)
        with engine.connection() as connection:
            ids = [find(connection, table.name).id for table in tables]
        for table in tables[:2]:
            table.refresh()
        refresh_all(engine, ids, initiated_by="test", waits=True)
        for table in tables:
            table.equals_its_query()


@pytest.fixture
def copied_rows(monkeypatch):
    """How many rows the driver has read up to now, those included that it gave back."""
    counted = [0]
    add = memory.Holding.add

    def counting(self, part, values=None):
        counted[0] += part.num_rows
        add(self, part, values)

    monkeypatch.setattr(memory.Holding, "add", counting)
    return lambda: counted[0]


def test_a_change_that_always_reaches_too_much_is_not_read_up_to_the_limit_each_time(
    source, stream_table, engine, monkeypatch, copied_rows
):
    monkeypatch.setattr(staging, "FEW_PAGES", 1)
    source("dims(id int primary key, name text)", rows=[(n, f"name {n}") for n in (3, 4)])
    facts = source("facts(id int primary key, dim int, amount int)")
    facts.change(
        "insert into facts select n, case when n <= 100 then 3 else 4 end, n % 100"
        " from generate_series(1, 20000) n",
        "create index on facts (dim)",
        "analyze facts",
    )
    # under AUTO the cost model may prefer a full refresh once the table is a minute old
    joined = stream_table(
        "select f.id, f.amount, d.name from facts f join dims d on d.id = f.dim", mode="DIFFERENTIAL"
    )
    engine.large_reach = 5_000

    def follow(dim: int) -> tuple[int, str]:
        before = copied_rows()
        facts.change(f"update dims set name = name || '!' where id = {dim}")
        reason = joined.refresh().reason
        joined.equals_its_query()
        return copied_rows() - before, reason

    first = [follow(4) for _ in range(reaches.SURE_AFTER)]
    assert all(rows > 5_000 and "spread over tasks" in reason for rows, reason in first), first
    then = [follow(4) for _ in range(2)]
    assert all(rows < 100 and "like the last 3 that were measured" in reason for rows, reason in then), then
    # the way back: now and then it is measured, and then it is known again
    engine.reaches._known.put(*_relied_on(engine, reaches.TRY_AGAIN_AFTER))
    rows, reason = follow(4)
    assert rows > 5_000
    assert "like the last" not in reason
    assert "like the last 4" in follow(4)[1]
    engine.reaches._known.put(*_relied_on(engine, reaches.TRY_AGAIN_AFTER))
    assert "spread" not in follow(3)[1]
    rows, reason = follow(4)
    assert rows > 5_000
    assert "like the last" not in reason


def _relied_on(engine, times):
    ((key, known),) = engine.reaches._known._entries.items()
    return key, replace(known, relied_on=times)


def test_tables_that_go_together_leave_out_one_that_always_reaches_too_much(
    facts, stream_table, engine, monkeypatch, copied_rows
):
    below = stream_table("select id, dim, amount from facts", name="below", mode="DIFFERENTIAL")
    above = stream_table(
        "select b.id, b.amount, d.name from below b join dims d on d.id = b.dim", mode="DIFFERENTIAL"
    )
    monkeypatch.setattr(memory, "FREE", 0)
    monkeypatch.setattr("pgtrickle.changes.kept_rows.MAX_ROWS", 1)
    engine.memory_limit = 6_000
    with engine.connection() as connection:
        ids = [find(connection, table.name).id for table in (below, above)]
    read = []
    for number in range(reaches.SURE_AFTER + 1):
        before = copied_rows()
        facts.change(f"update dims set name = name || '!' where id = {1 + number % 3}")
        *_, last = refresh_all(engine, ids, initiated_by="test", waits=True)
        read.append(copied_rows() - before)
        above.equals_its_query()
        assert isinstance(last, RefreshOutcome)
        reason = last.reason
    assert "like the last 3 that were measured" in reason
    assert read[-1] < min(read[:-1]) / 2
