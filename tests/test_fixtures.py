"""The ground that the other tests stand on."""

from __future__ import annotations

import psycopg
import pytest

from tests.fixtures.bags import assert_same_bag, difference


@pytest.mark.every_postgres
def test_the_product_runs_as_nobody_special_who_may_create_schemas(connection):
    role = connection.execute(
        "select current_user, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
        " from pg_roles where rolname = current_user"
    ).fetchone()
    assert role == ("trickle", False, False, False, False, False)
    connection.execute("create schema somewhere")


def test_the_product_may_read_a_source_and_put_triggers_on_it_but_not_write(source, connection):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10), (2, None)])
    assert connection.execute("select * from orders order by id").fetchall() == [(1, 10), (2, None)]
    allowed = "select has_table_privilege(%s, %s)"
    assert connection.execute(allowed, [orders.name, "trigger"]).fetchone() == (True,)
    assert connection.execute(allowed, [orders.name, "insert, update, delete"]).fetchone() == (False,)


def test_a_source_may_have_any_name(source, admin):
    source('"x""; drop table y; --"(id int, "Größe" text)', rows=[(1, "%s")])
    assert admin.execute('select * from "x""; drop table y; --"').fetchall() == [(1, "%s")]


def test_a_change_is_one_transaction(source, admin):
    orders = source("orders(id int primary key)", rows=[(1,)])
    with pytest.raises(psycopg.errors.UniqueViolation):
        orders.change("delete from orders", "insert into orders values (2), (2)")
    assert admin.execute("select id from orders").fetchall() == [(1,)]


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_a_database_of_its_own(source, admin, turn):
    source("orders(id int)", rows=[(turn,)])
    assert admin.execute("select id from orders").fetchall() == [(turn,)]


def test_sessions_of_one_test_overlap(source, connect):
    source("orders(id int)")
    writer, reader = connect("app"), connect("app")
    writer.execute("insert into orders values (1)")
    assert reader.execute("select count(*) from orders").fetchone() == (0,)
    reader.rollback()
    writer.commit()
    assert reader.execute("select count(*) from orders").fetchone() == (1,)


def test_bags_are_equal_in_any_order_with_nulls_and_copies(admin):
    assert_same_bag(admin, "values (1, null), (2, 'b'), (1, null)", "values (2, 'b'), (1, null), (1, null)")


def test_bags_differ_by_one_copy(admin):
    given, wanted = "values (1), (1), (3)", "values (1), (2), (3) -- the end"
    assert difference(admin, given, wanted) == ["+ (1)", "- (2)"]
    with pytest.raises(AssertionError, match=r"is not(.|\n)*\+ \(1\)\n- \(2\)"):
        assert_same_bag(admin, given, wanted)
