"""The next least or greatest value of a group comes from an index by group and value, if there is one."""

from __future__ import annotations

import pytest

from pgtrickle.changes import answers


@pytest.fixture
def asked(monkeypatch):
    """The queries that were answered by an index."""
    found: list[str] = []
    compose = answers._query_by_index

    def composed(read, query, rows):
        found.append(query)
        return compose(read, query, rows)

    monkeypatch.setattr(answers, "_query_by_index", composed)
    return found


def test_extrema_that_go_away_are_found_by_the_index(source, followed, app, asked):
    source("item(kind text, size smallint, v int, price numeric, day date)")
    app.execute("create index on item (kind, size, v); create index on item (size, kind, v desc)")
    app.execute("create index on item (day, price)")
    app.execute(
        "insert into item select case when n % 7 = 0 then null else 'k' || n % 3 end, n % 2, nullif(n, 5),"
        " n / 10.0, date '2026-01-01' + n % 4 from generate_series(1, 60) n"
    )
    tables = followed(
        "select kind, size, min(v) as least, max(v) as most, count(*) as n from item group by kind, size",
        "select day, max(price) as most from item where v > 3 group by day",
        "select kind as k, min(v) + 1 as next, size from (select * from item where day is not null) i"
        " group by size, kind",
    )
    tables.after(
        "delete from item where v in (1, 2, 60, 59, 58, 57)", "insert into item values ('k1', 1, 0, 9, null)"
    )
    tables.after(
        "update item set v = v + 100 where v < 10", "update item set kind = 'k0' where v between 50 and 55"
    )
    tables.after(
        "delete from item where kind = 'k2' and size = 0", "update item set price = 0 where price > 5"
    )
    tables.after(
        "update item set v = null where kind = 'k1'", "delete from item where kind is null and v < 40"
    )
    tables.after("delete from item")
    assert asked


def test_a_group_of_several_tables_or_a_computed_value_is_scanned(source, followed, app, asked):
    source("item(kind int, v int)", rows=[(1, 1), (1, 2), (2, 3), (2, 4)])
    source("kinds(id int primary key, name text)", rows=[(1, "one"), (2, "two")])
    app.execute("create index on item (kind, v)")
    tables = followed(
        "select kind, min(v * 2) as least from item group by kind",
        "select kind, max(v) filter (where v < 4) as most from item group by kind",
        "select name, min(v) as least from item join kinds on id = kind group by name",
    )
    tables.after("delete from item where v in (1, 3)", "insert into item values (2, 9)")
    assert not asked
