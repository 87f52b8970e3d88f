"""A small change that reaches many rows: the path follows from what is read, and the memory is bounded."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.changes import memory
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.refresh import staging
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
    table = stream_table(query, mode="DIFFERENTIAL")
    # the pages of these tables are worth tasks here
    monkeypatch.setattr(staging, "FEW_PAGES", 1)
    monkeypatch.setattr("pgtrickle.changes.kept.MAX_ROWS", 1)
    for most, statements in zip((100, 3), WINDOWS, strict=True):
        engine.large_reach = most
        facts.change(*statements)
        outcome = table.refresh()
        assert outcome.action is Action.DIFFERENTIAL
        table.equals_its_query()
    assert "spread over tasks, since it reaches more than 3 rows" in outcome.reason


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
    monkeypatch.setattr("pgtrickle.changes.kept.MAX_ROWS", 1)
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
