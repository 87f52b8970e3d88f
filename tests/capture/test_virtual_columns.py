"""Virtual generated columns, which PostgreSQL 18 has, are not stored and yet captured."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import APP

pytestmark = pytest.mark.on_postgres(18)


def test_virtual_generated_columns_are_captured(source, follow):
    orders = source("orders(id int, amount int, double int generated always as (amount * 2) virtual)")
    reader = follow("orders")
    orders.change("insert into orders(id, amount) values (1, 10)", "update orders set amount = 11")
    assert reader.changes() == {"(1,11,22)": 1}


def test_renaming_what_a_virtual_column_is_computed_from_does_not_stop_writers(source, follow):
    orders = source("orders(amount int, double int generated always as (amount * 2) virtual)")
    follow("orders", "select double from orders")
    orders.change("alter table orders rename amount to price", "insert into orders(price) values (10)")


def test_a_partition_that_computes_a_column_otherwise_is_refused(source, follow, app):
    events = source("events(a int, b int generated always as (a * 2) virtual) partition by range (a)")
    events.change(
        "create table events_1(a int, b int generated always as (a * 3) virtual)",
        "grant select, trigger on events_1 to trickle",
        "alter table events attach partition events_1 for values from (0) to (9)",
    )
    with pytest.raises(Exception, match="computes column b differently"):
        follow("events")


def test_a_virtual_column_that_cannot_be_computed_is_not_computed_for_the_writer(source, follow, connect):
    source("shares(id int, parts int, share int generated always as (100 / parts) virtual)")
    reader = follow("shares")
    writer = connect(APP)
    writer.execute("insert into shares values (1, 4)")
    writer.commit()
    assert reader.changes() == {"(1,4,25)": 1}
    writer.execute("insert into shares values (2, 0)")
    writer.execute("update shares set parts = 5 where id = 1")
    writer.commit()
    assert reader.is_marked()


def test_a_virtual_column_is_captured_alike_whatever_the_settings_of_the_writer(source, follow, connect):
    """The output functions of floats and bytea depend on settings, and are immutable all the same."""
    source(
        "readings(id int, f float8, b bytea, f_text text generated always as (f::text) virtual,"
        " b_text text generated always as (b::text) virtual)"
    )
    reader = follow("readings", "select id, f_text, b_text from readings")
    odd, plain = connect(APP), connect(APP)
    odd.execute("set extra_float_digits = 0")
    odd.execute("set bytea_output = escape")
    odd.execute("insert into readings values (1, 1 / 3.0::float8, '\\x01ff')")
    odd.commit()
    assert reader.changes() == {r'(1,0.3333333333333333,"\\x01ff")': 1}
    plain.execute("delete from readings")
    plain.commit()
    assert reader.changes() == {}
