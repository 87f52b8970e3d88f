"""Materialized views that became stream tables, followed by PostgreSQL's answer."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action
from tests.fixtures.stream_tables import StreamTable

SUMS = "select g, sum(v) as total, count(*) as n from items group by g"
FIRST = "select id, v from items order by v desc, id limit 3"
JOINED = "select a.id, b.v from items a left join items b on b.id = a.g"


@pytest.fixture
def items(source):
    return source("items(id int primary key, g int, v int)", rows=[(n, n % 3, n) for n in range(1, 9)])


@pytest.fixture
def adopted(app, engine):
    def create(name: str, query: str) -> StreamTable:
        with app.transaction():
            app.execute(f"create materialized view {name} as {query}")
            app.execute(f"grant select on {name} to trickle")
        return StreamTable(name, query, engine, app)

    return create


def adopt(app, *tables: StreamTable) -> None:
    for table in tables:
        with app.transaction():
            app.execute("select pgtrickle.adopt_materialized_view(%s, schedule => null)", (table.name,))


@pytest.mark.light
def test_stale_rows_become_exact_with_the_first_refresh_and_follow_every_change(items, adopted, app):
    tables = [adopted("sums", SUMS), adopted("firsts", FIRST), adopted("joined", JOINED)]
    items.change("insert into items values (20, 1, 50)", "delete from items where id = 3")
    adopt(app, *tables)
    items.change("update items set v = v + 1 where id < 5")
    for table in tables:
        outcome = table.refresh()
        assert (outcome.action, outcome.reason) == (Action.REINITIALIZE, "it was a materialized view")
        table.equals_its_query()
    items.change("update items set g = g + 1 where id % 2 = 0", "delete from items where v = 50")
    for table in tables:
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()


def test_rows_that_did_not_change_are_not_written_again(items, adopted, app):
    table = adopted("sums", SUMS)
    adopt(app, table)
    outcome = table.refresh()
    assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 0)
    table.equals_its_query()


def test_stream_tables_over_it_follow_the_stream_table(items, adopted, stream_table, app):
    lower = adopted("sums", SUMS)
    upper = stream_table("select max(total) as most from sums", name="upper_one")
    adopt(app, lower)
    for change in ("insert into items values (30, 1, 500)", "delete from items where id = 30"):
        items.change(change)
        lower.refresh()
        upper.refresh()
        lower.equals_its_query()
        upper.equals_its_query()
