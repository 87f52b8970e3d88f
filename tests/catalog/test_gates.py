"""While a source is gated, all that depends on it waits; its changes are captured all the same."""

from __future__ import annotations

import itertools

import psycopg
import pytest

from pgtrickle.catalog.claims import claim
from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import SourceGated
from tests.fixtures.polls import generation

pytestmark = pytest.mark.every_postgres


@pytest.fixture(autouse=True)
def tables(source, app):
    source("orders(id int)")
    source("others(id int)")
    for name, query in {
        "a": "select id from orders",
        "b": "select id from a",
        "c": "select id from others",
    }.items():
        app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))


@pytest.fixture
def loader(admin, connect, database) -> psycopg.Connection:
    """Somebody who owns nothing, and may only insert."""
    admin.execute(
        f"do $$ begin create role loader login password '{database.server.password}';"
        " exception when duplicate_object then null; end $$"
    )
    admin.execute("grant insert on orders to loader")
    connection: psycopg.Connection = connect("loader")
    connection.autocommit = True
    return connection


def gated(app: psycopg.Connection) -> list[tuple[object, ...]]:
    return app.execute(
        "select source_table, gated_by::text, stream_tables from pgtrickle.gated_sources()"
    ).fetchall()


def test_all_that_depends_on_a_gated_source_waits_and_nothing_else(app, connection):
    app.execute("select pgtrickle.gate_source('orders')")
    assert gated(app) == [("public.orders", "app", ["public.a", "public.b"])]
    for name in ("a", "b"):
        with pytest.raises(SourceGated, match=r"public\.orders has been gated since .* UTC by app"):
            claim(connection, find(connection, name).id, wait=False)
        connection.rollback()
    assert claim(connection, find(connection, "c").id, wait=False) is not None


def test_a_stream_table_can_be_gated_as_a_source(app, connection):
    app.execute("select pgtrickle.gate_source('a')")
    assert gated(app) == [("public.a", "app", ["public.b"])]
    assert claim(connection, find(connection, "a").id, wait=False) is not None


def test_gating_and_opening_again_are_harmless_and_told_to_sidecars_once(app, connection):
    numbers = [generation(connection)]
    for statement in ("gate", "gate", "ungate", "ungate"):
        connection.commit()
        app.execute(f"select pgtrickle.{statement}_source('orders')")
        numbers.append(generation(connection))
    steps = [after != before for before, after in itertools.pairwise(numbers)]
    assert steps == [True, False, True, False]
    assert gated(app) == []
    assert claim(connection, find(connection, "a").id, wait=False) is not None


def test_changes_of_a_gated_source_are_captured(app):
    app.execute("select pgtrickle.gate_source('orders')")
    app.execute("insert into orders values (1), (2)")
    row = app.execute(
        "select pending_rows from pgtrickle.change_buffer_sizes() where stream_table = 'public.a'"
    ).fetchone()
    assert row == (2,)


@pytest.mark.parametrize(
    "statement", ["select pgtrickle.refresh_stream_table('b')", "call pgtrickle.refresh_and_wait('b', '1 s')"]
)
def test_who_asks_for_a_refresh_is_told_of_the_gate_at_once(app, statement):
    app.execute("select pgtrickle.gate_source('orders')")
    with pytest.raises(psycopg.Error, match=r"public\.orders has been gated") as refused:
        app.execute(statement)
    assert refused.value.sqlstate == SourceGated.sqlstate
    assert "ungate_source" in (refused.value.diag.message_hint or "")


def test_whoever_may_write_to_a_source_may_gate_it(loader, app):
    loader.execute("select pgtrickle.gate_source('orders')")
    assert gated(app)[0][1] == "loader"
    loader.execute("select pgtrickle.ungate_source('orders')")
    assert gated(app) == []


@pytest.mark.parametrize("function", ["gate_source('others')", "ungate_source('others')", "gate_source('a')"])
def test_who_may_not_write_to_a_source_may_not_gate_it(loader, function):
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="write access to") as refused:
        loader.execute(f"select pgtrickle.{function}")
    hint = refused.value.diag.message_hint or ""
    assert hint.startswith("Its owner is app. For example: grant insert on public.")
    assert hint.endswith(" to loader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        loader.execute("select pgtrickle_internal.close_gate('others'::regclass)")


def test_what_is_no_source_cannot_be_gated(app):
    app.execute("create table lonely (id int)")
    app.execute("create view seen as select id from others")
    app.execute("select pgtrickle.create_stream_table('d', 'select id from seen')")
    for name, state, hint in (
        ("lonely", "42809", "list_sources"),
        ("seen", "42809", "name the tables that it reads"),
        ("nope", "42P01", "search_path"),
        ("a.b.c", "42602", "schema.name"),
    ):
        with pytest.raises(psycopg.Error) as refused:
            app.execute("select pgtrickle.gate_source(%s)", (name,))
        assert (refused.value.sqlstate, hint in str(refused.value.diag.message_hint)) == (state, True)


def test_a_gate_before_a_table_that_is_gone_is_forgotten(app):
    app.execute("select pgtrickle.gate_source('orders')")
    app.execute("select pgtrickle.drop_stream_table('a', true)")
    app.execute("select pgtrickle.ungate_source('orders')")
    app.execute("select pgtrickle.gate_source('others')")
    app.execute("drop table others")
    assert gated(app) == []
