"""Small sources that do not change are not read again, and never believed for too long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pgtrickle.changes import kept_rows, read
from pgtrickle.postgres.arrow import read_batches
from pgtrickle.refresh.execute import apply_result


@pytest.fixture
def asked(monkeypatch) -> Callable[[str], int]:
    """How often a relation has been read since it was last asked."""
    texts: list[str] = []

    def counting(connection, query, *args, **kwargs):
        texts.append(query.as_string(connection))
        return original(connection, query, *args, **kwargs)

    original = read_batches
    monkeypatch.setattr(read, "read_batches", counting)

    def count(name: str) -> int:
        found = sum(f'"{name}" as t' in text for text in texts)
        texts.clear()
        return found

    return count


@pytest.fixture
def shop(source):
    source("countries(id int primary key, name text, zone int)", rows=[(n, f"c{n}", n % 2) for n in range(4)])
    source("orders(id int primary key, country int, qty int)", rows=[(1, 0, 1), (2, 1, 2), (3, None, 3)])


QUERIES = (
    "select o.id, c.name from orders o join countries c on c.id = o.country",
    "select c.zone, sum(o.qty) as n from orders o left join countries c on c.id = o.country group by c.zone",
    "select o.id, exists (select from countries c where c.id = o.country and c.zone = 1) as is_far"
    " from orders o",
)


@pytest.mark.parametrize("query", QUERIES)
def test_an_unchanged_source_is_read_once(shop, followed, asked, query):
    tables = followed(query)
    asked("countries")
    tables.after(
        "insert into orders values (4, 2, 4), (5, null, 5)", "update orders set country = 3 where id = 1"
    )
    assert asked("countries") == 1
    tables.after("update orders set country = 0 where id in (2, 4)")
    tables.stand_still()
    tables.after("delete from orders where id < 4")
    assert asked("countries") == 0


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_kept_ends_with_the_first_change(shop, followed, query):
    tables = followed(query)
    tables.after("insert into orders values (4, 2, 4)")
    tables.after("update countries set name = 'new', zone = 7 where id = 2", "update orders set qty = 9")
    tables.after("insert into orders values (5, 2, 5)")
    tables.after("delete from countries where id = 2")
    tables.after("insert into orders values (6, 2, 6)")
    tables.after("insert into countries values (2, 'again', 1)")
    tables.after("insert into orders values (7, 2, 7)")


@pytest.mark.light
def test_a_table_that_was_altered_is_read_again(shop, followed, app):
    tables = followed(QUERIES[0], QUERIES[2])
    tables.after("insert into orders values (4, 2, 4)")
    with app.transaction():
        app.execute("alter table countries alter zone type bigint using 1 - zone")
    for table in tables.tables:
        table.refresh()
    tables.after("insert into orders values (5, 2, 5)")


def test_a_large_source_is_looked_up(shop, followed, asked, monkeypatch):
    monkeypatch.setattr(kept_rows, "MAX_ROWS", 3)
    tables = followed(QUERIES[0])
    for number in range(4, 7):
        tables.after(f"insert into orders values ({number}, 2, 4)")
    assert asked("countries") >= 3


def test_a_refresh_that_failed_leaves_nothing_behind(shop, stream_table, app, monkeypatch):
    table = stream_table(QUERIES[0], mode="DIFFERENTIAL")
    with app.transaction():
        app.execute("insert into orders values (4, 2, 4)")
    with monkeypatch.context() as broken:
        broken.setattr(apply_result, "apply_changes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            table.refresh()
    with app.transaction():
        app.execute("update countries set name = 'new'")
    table.refresh()
    with app.transaction():
        app.execute("insert into orders values (5, 2, 4)")
    table.refresh()
    table.equals_its_query()
