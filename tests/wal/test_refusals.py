"""What cannot be captured from the log is refused: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import Database
from tests.fixtures.sources import Source
from tests.fixtures.wal import decoded_sources, hand_over

CREATE = "select pgtrickle.create_stream_table('totals', 'select id, amount from orders', cdc_mode => %s)"


@contextmanager
def without(admin: psycopg.Connection, taken: str, given: str) -> Iterator[None]:
    """Roles belong to the server, so other tests need the right again."""
    admin.execute(taken)
    try:
        yield
    finally:
        admin.execute(given)


def refusal(app: psycopg.Connection, mode: str = "wal") -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as refused:
        app.execute(CREATE, (mode,))
    return refused.value.diag.message_primary, refused.value.diag.message_hint


def test_a_mode_that_does_not_exist(full_source: Source, app: psycopg.Connection) -> None:
    full_source("orders(id int primary key, amount int)")
    message, hint = refusal(app, "log")
    assert message == "'log' is not a value of cdc_mode"
    assert hint is not None
    assert "wal" in hint


def test_a_role_that_may_not_replicate(
    full_source: Source, app: psycopg.Connection, admin: psycopg.Connection
) -> None:
    full_source("orders(id int primary key, amount int)")
    with without(admin, "alter role trickle noreplication", "alter role trickle replication"):
        message, hint = refusal(app)
    assert message == (
        "public.orders cannot be captured from the write-ahead log:"
        " role trickle may not use replication slots"
    )
    assert hint == "Run alter role trickle replication."


def test_a_table_of_another_role(
    full_source: Source,
    app: psycopg.Connection,
    admin: psycopg.Connection,
    engine: Engine,
    database: Database,
) -> None:
    """Only its owner may publish it; an administrator may do that instead."""
    full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    with without(admin, "revoke app from trickle", "grant app to trickle"):
        message, hint = refusal(app)
        assert message == (
            "public.orders cannot be captured from the write-ahead log:"
            " role trickle does not own public.orders, and it is not in the publication pgtrickle"
        )
        assert hint == "Run grant app to trickle."
        admin.execute("create publication pgtrickle for table orders")
        app.execute(CREATE, ("wal",))
        assert hand_over(engine) == [None]
        assert decoded_sources(database) == ["public.orders"]


def test_all_slots_are_taken(full_source: Source, app: psycopg.Connection, admin: psycopg.Connection) -> None:
    full_source("orders(id int primary key, amount int)")
    taken = admin.execute(
        "select s.slot_name from generate_series(1, current_setting('max_replication_slots')::int"
        " - (select count(*)::int from pg_replication_slots)) n,"
        " pg_create_physical_replication_slot('taken_' || n) s"
    ).fetchall()
    try:
        message, hint = refusal(app)
    finally:
        for (name,) in taken:
            admin.execute("select pg_drop_replication_slot(%s)", (name,))
    assert message is not None
    assert message.endswith("all 20 replication slots of the server are taken")
    assert hint == "Raise max_replication_slots, or drop a slot that nobody uses."


def test_explain_says_how_each_source_is_captured_and_why(
    source: Source, app: psycopg.Connection, engine: Engine
) -> None:
    source("orders(id int primary key, amount int)")

    def capture() -> str:
        row = app.execute(
            "select value from pgtrickle.explain_st('totals') where property = 'capture'"
        ).fetchone()
        assert row is not None
        return str(row[0])

    app.execute(CREATE, ("auto",))
    hand_over(engine)
    assert capture().startswith("public.orders by trigger")
    assert "replica identity full" in capture()
    app.execute("alter table orders replica identity full")
    assert hand_over(engine) == [None]
    assert capture().startswith("public.orders by wal")
