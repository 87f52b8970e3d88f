"""Tables of every shape, altered under us, are captured, and never stop the application."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import TRICKLE

pytestmark = pytest.mark.every_postgres

PARTITIONED = "events(id int, day int, v text) partition by range (day)"


def partitioned(source):
    events = source(PARTITIONED)
    events.change(
        "create table events_1 partition of events for values from (0) to (10)",
        "create table events_2 partition of events for values from (10) to (20) partition by range (day)",
        "create table events_2a partition of events_2 for values from (10) to (15)",
        f"grant select, trigger on events_1, events_2, events_2a to {TRICKLE}",
        "insert into events select n, n, 'v' from generate_series(1, 14) n",
    )
    return events


def test_statements_to_the_root_and_to_partitions_are_captured(source, follow):
    events = partitioned(source)
    reader = follow("events")
    events.change(
        "insert into events values (100, 1, 'root')",
        "insert into events_1 values (101, 2, 'leaf')",
        "insert into events_2 values (102, 12, 'middle')",
        "update events_2a set v = 'x' where id = 12",
        "delete from events_1 where id = 3",
        "delete from events where id in (4, 14)",
    )
    reader.catches_up()


def test_a_row_that_moves_to_another_partition_is_captured(source, follow):
    events = partitioned(source)
    reader = follow("events")
    events.change("update events set day = day + 10 where id in (1, 2)")
    assert reader.changes() == {"(1,1,v)": -1, "(1,11,v)": 1, "(2,2,v)": -1, "(2,12,v)": 1}
    reader.catches_up()


def test_truncating_one_partition_leaves_a_marker(source, follow):
    events = partitioned(source)
    reader = follow("events")
    events.change("truncate events_1")
    reader.catches_up()
    assert reader.was_truncated


def test_a_partition_alone_hears_of_statements_to_its_root(source, follow):
    events = partitioned(source)
    reader = follow("events_1")
    events.change(
        "insert into events values (100, 1, 'root'), (101, 11, 'elsewhere')",
        "insert into events_1 values (102, 1, 'leaf')",
        "update events set day = 12 where id = 1",
        "update events set v = 'y' where id = 2",
        "delete from events where id = 3",
    )
    reader.catches_up()


def test_a_partition_with_another_order_of_columns_is_captured(source, follow):
    events = source(PARTITIONED)
    events.change(
        "create table odd(gone int, v text, day int, id int)",
        "alter table odd drop column gone",
        f"grant select, trigger on odd to {TRICKLE}",
        "alter table events attach partition odd for values from (0) to (100)",
    )
    reader = follow("events")
    events.change(
        "insert into odd(id, day, v) values (1, 2, 'three')", "insert into events values (4, 5, 'six')"
    )
    assert reader.changes() == {"(1,2,three)": 1, "(4,5,six)": 1}


def test_a_detached_partition_is_no_longer_captured(source, follow):
    events = partitioned(source)
    reader = follow("events")
    events.change(
        "alter table events detach partition events_1", "insert into events_1 values (5, 5, 'alone')"
    )
    assert reader.changes() == {}


def test_children_by_inheritance_are_captured(source, follow):
    people = source("people(name text)")
    people.change(
        "create table workers(job text) inherits (people)", f"grant select, trigger on workers to {TRICKLE}"
    )
    reader = follow("people")
    people.change("insert into workers values ('ann', 'smith')", "insert into people values ('bob')")
    people.change("update people set name = upper(name)")
    reader.catches_up()


def test_columns_added_later_do_not_disturb(source, follow):
    orders = source("orders(id int, amount int)", rows=[(1, 10)])
    reader = follow("orders")
    orders.change(
        "alter table orders add column note text default 'n'", "insert into orders values (2, 20, 'x')"
    )
    assert reader.changes() == {"(2,20)": 1}


def test_a_second_reader_widens_what_is_captured(source, follow):
    orders = source("orders(id int, amount int, note text)", rows=[(1, 10, "a")])
    narrow = follow("orders", "select id from orders")
    orders.change("insert into orders values (2, 20, 'b')")
    assert narrow.changes() == {"(2)": 1}
    wide = follow("orders")
    orders.change("update orders set note = 'c' where id = 1")
    assert wide.changes() == {"(1,10,a)": -1, "(1,10,c)": 1}
    narrow.catches_up()
    wide.catches_up()


def test_a_query_without_columns_captures_rows_without_columns(source, follow):
    orders = source("orders(id int)", rows=[(1,)])
    reader = follow("orders", "select count(*) from orders")
    orders.change("insert into orders values (2), (3)", "delete from orders where id = 1")
    assert reader.changes() == {"()": 1}


def test_a_widened_value_still_fits(source, follow):
    orders = source("orders(id int, note varchar(3))")
    reader = follow("orders")
    orders.change("alter table orders alter note type varchar(10)", "insert into orders values (1, 'longer')")
    assert reader.changes() == {"(1,longer)": 1}


def test_stored_generated_columns_are_captured(source, follow):
    orders = source("orders(id int, amount int, double int generated always as (amount * 2) stored)")
    reader = follow("orders")
    orders.change("insert into orders(id, amount) values (1, 10)", "update orders set amount = 11")
    assert reader.changes() == {"(1,11,22)": 1}


def test_names_of_every_kind_are_captured(source, follow):
    columns = [
        "xid",
        "weight",
        "count",
        "t",
        "r",
        "c1",
        "tg_op",
        "is_altered",
        "new",
        '"select"',
        '"x""; drop table y; --"',
        '"Ü"',
    ]
    declared = ", ".join(f"{column} int" for column in columns)
    odd = source(f'"x""; drop table y; --"({declared})')
    reader = follow(odd.name)
    values = ", ".join(str(number) for number in range(len(columns)))
    odd.change(f"insert into {odd.name} values ({values})", f"update {odd.name} set xid = 77")
    odd.change(f"delete from {odd.name} where weight = 99")
    assert reader.catches_up() == 1


def test_more_than_sixty_columns_are_captured(source, follow):
    wide = source("wide(" + ", ".join(f"column_{n} int" for n in range(80)) + ")")
    reader = follow("wide")
    wide.change(
        "insert into wide values (" + ", ".join(str(n) for n in range(80)) + ")",
        "update wide set column_3 = 0",
    )
    reader.catches_up()
