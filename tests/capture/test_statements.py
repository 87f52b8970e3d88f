"""Every kind of statement that changes a table is captured exactly."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.every_postgres


def test_inserts_updates_and_deletes_are_captured(source, follow):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 20), (3, 30)])
    reader = follow("orders")
    orders.change(
        "insert into orders values (4, 40), (5, null)",
        "update orders set amount = amount + 1 where id <= 2",
        "delete from orders where id = 3",
    )
    reader.catches_up()


def test_an_update_writes_both_images(source, follow):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10)])
    reader = follow("orders")
    orders.change("update orders set amount = 11")
    assert reader.changes() == {"(1,10)": -1, "(1,11)": 1}


def test_a_statement_without_rows_leaves_nothing(source, follow):
    orders = source("orders(id int)", rows=[(1,)])
    reader = follow("orders")
    orders.change("delete from orders where id = 7", "update orders set id = 1 where false")
    assert reader.catches_up() == 0


def test_tables_without_a_key_keep_their_duplicates(source, follow):
    words = source("words(word text)", rows=[("a",), ("a",), ("b",)])
    reader = follow("words")
    words.change(
        "insert into words values ('a'), (null), (null)",
        "delete from words where ctid = (select min(ctid) from words where word = 'a')",
    )
    assert reader.changes() == {"()": 2}
    reader.catches_up()


def test_primary_keys_swapped_in_one_statement(source, follow):
    pairs = source(
        "pairs(id int primary key deferrable initially deferred, v text)", rows=[(1, "a"), (2, "b")]
    )
    reader = follow("pairs")
    pairs.change("update pairs set id = 3 - id")
    reader.catches_up()


def test_copy_is_captured(source, follow, app):
    source("orders(id int, note text)")
    reader = follow("orders")
    with app.cursor() as cursor, cursor.copy("copy orders from stdin") as copy:
        for number in range(1000):
            copy.write_row((number, "x" * (number % 7)))
    assert reader.catches_up() == 1000


def test_on_conflict_is_captured_on_both_ways(source, follow):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10)])
    reader = follow("orders")
    orders.change(
        "insert into orders values (1, 11), (2, 20) on conflict (id) do update set amount = excluded.amount",
        "insert into orders values (2, 99) on conflict do nothing",
    )
    assert reader.changes() == {"(1,10)": -1, "(1,11)": 1, "(2,20)": 1}


def test_merge_is_captured(source, follow):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 20), (3, 30)])
    reader = follow("orders")
    orders.change(
        "merge into orders o using (values (1, 0), (2, 21), (4, 40)) as n(id, amount) on o.id = n.id"
        " when matched and n.amount = 0 then delete"
        " when matched then update set amount = n.amount"
        " when not matched then insert values (n.id, n.amount)"
    )
    reader.catches_up()


def test_two_writing_ctes_on_one_table_are_captured(source, follow):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 20)])
    reader = follow("orders")
    orders.change(
        "with gone as (delete from orders where id = 1 returning *),"
        " more as (insert into orders select id + 10, amount from gone returning *)"
        " update orders set amount = amount + 1 where id = 2"
    )
    reader.catches_up()


def test_cascades_are_captured(source, follow):
    parents = source("parents(id int primary key)", rows=[(1,), (2,)])
    children = source(
        "children(id int, parent int references parents on delete cascade on update cascade)",
        rows=[(1, 1), (2, 1), (3, 2)],
    )
    reader = follow(children.name)
    parents.change("delete from parents where id = 1", "update parents set id = 5 where id = 2")
    assert reader.changes() == {"(1,1)": -1, "(2,1)": -1, "(3,2)": -1, "(3,5)": 1}
    reader.catches_up()


def test_truncate_leaves_a_marker(source, follow):
    orders = source("orders(id int)", rows=[(1,)])
    reader = follow("orders")
    orders.change("truncate orders", "insert into orders values (2)")
    reader.catches_up()
    assert reader.was_truncated
    orders.change("insert into orders values (3)")
    reader.catches_up()
    assert not reader.was_truncated


def test_truncate_cascade_leaves_a_marker_in_the_table_below(source, follow):
    parents = source("parents(id int primary key)", rows=[(1,)])
    source("children(id int references parents)", rows=[(1,)])
    reader = follow("children")
    parents.change("truncate parents cascade")
    reader.catches_up()
    assert reader.was_truncated


def test_large_values_are_captured_whole(source, follow):
    documents = source("documents(id int, body text)", rows=[(1, "short")])
    reader = follow("documents")
    documents.change(
        "update documents set body = (select string_agg(md5(n::text), '') from generate_series(1, 20000) n)"
    )
    documents.change("update documents set id = 2")
    reader.catches_up()


def test_types_of_all_kinds_are_captured(source, follow, app):
    app.execute("create type mood as enum ('sad', 'glad')")
    app.execute("create domain positive as numeric(8, 2) check (value > 0)")
    things = source(
        "things(m mood, p positive, a int[], j jsonb, b bytea, c char(4), v varchar(3), t timestamptz,"
        " r int4range, u uuid, n name)"
    )
    reader = follow("things")
    things.change(
        "insert into things values ('glad', 1.5, '{1,null}', '{\"a\": [1]}', '\\x00ff', 'ab', 'abc',"
        " 'infinity', '[1,5)', '8d6eff8e-0b07-4f29-9a7e-6e2a80d2b1b5', 'n')",
        "update things set m = 'sad', c = null",
    )
    reader.catches_up()


def test_a_search_path_full_of_traps_changes_nothing(source, follow, app, admin):
    """The trigger runs with the rights of the sidecar; nothing a writer defines may run in it."""
    orders = source("orders(id int)")
    reader = follow("orders")
    admin.execute("create schema traps authorization app")
    app.execute(
        "create function traps.sprung(text, text) returns boolean language plpgsql"
        " as 'begin raise exception $t$sprung as %$t$, current_user; end'"
    )
    app.execute("create operator traps.= (leftarg = text, rightarg = text, function = traps.sprung)")
    app.execute("create temporary table new_rows(id int)")
    app.execute("create temporary table pg_attribute(id int)")
    app.execute("set search_path = traps, pg_temp, public, pg_catalog")
    orders.change("insert into orders values (1)", "update orders set id = 2")
    assert reader.changes() == {"(2)": 1}
