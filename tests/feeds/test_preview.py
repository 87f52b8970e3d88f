"""A preview says exactly what the following refresh does, and changes nothing."""

from __future__ import annotations

import json
import threading
from collections import Counter

import psycopg
import pytest

import pgtrickle
from pgtrickle.commands import preview as local
from pgtrickle.commands.changes import changes
from pgtrickle.commands.preview import preview
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.serving import preview_served
from pgtrickle.interfaces.cli.application import run
from pgtrickle.model.changes import ChangeKind, Preview
from pgtrickle.model.errors import PermissionDenied, PreviewTimedOut, SourceGated, Suspended
from pgtrickle.model.stream_table import Action
from tests.feeds.conftest import added_up, content_of
from tests.feeds.test_changes import CHANGES, FIRST, FIRST_GROUPS, GROUPS, REPLACED, ROWS
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually


def difference(found: Preview) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for change in found.changes:
        counted[change.change.value, change.row_text] += change.count
    return counted


def difference_of(before: Counter[str], after: Counter[str]) -> Counter[tuple[str, str]]:
    inserted = {("insert", row): count for row, count in (after - before).items()}
    return Counter({**inserted, **{("delete", row): count for row, count in (before - after).items()}})


@pytest.mark.light
@pytest.mark.parametrize(
    ("query", "mode"),
    [
        (ROWS, "DIFFERENTIAL"),
        (GROUPS, "DIFFERENTIAL"),
        (REPLACED, "DIFFERENTIAL"),
        (FIRST, "DIFFERENTIAL"),
        (FIRST_GROUPS, "DIFFERENTIAL"),
        (ROWS, "FULL"),
    ],
    ids=["rows", "groups", "replaced groups", "first rows", "first groups", "full"],
)
def test_the_refresh_does_what_its_preview_said(orders, app, engine, stream_table, query, mode):
    table = stream_table(query, name="shown", mode=mode, loads=False)
    for statement in (None, None, *CHANGES):
        if statement:
            orders.change(statement)
        before = content_of(app, "shown")
        found = preview(engine, "shown")
        assert content_of(app, "shown") == before
        assert preview(engine, "shown").changes == found.changes
        outcome = table.refresh()
        assert (found.action, found.rows_inserted, found.rows_deleted) == (
            outcome.action,
            outcome.rows_inserted,
            outcome.rows_deleted,
        )
        assert found.reason == outcome.reason
        assert not found.is_truncated
        assert difference(found) == difference_of(before, content_of(app, "shown"))
        table.equals_its_query()


def test_a_preview_leaves_nothing_behind(orders, app, admin, engine, stream_table):
    stream_table(GROUPS, name="shown")
    orders.change("insert into orders values (9, 'west', 1)")

    def everything() -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = admin.execute(
            "select s::text from pgtrickle.pgt_stream_tables s union all select h::text from"
            " pgtrickle.pgt_refresh_history h union all select b::text from pgtrickle.pgt_batches b"
            " union all select t::text from shown t union all select s::text from pgtrickle_state.state_1 s"
            " union all select relname || relfilenode from pg_class where relname !~ '^pg_' order by 1"
        ).fetchall()
        return found

    before = everything()
    assert preview(engine, "shown").rows_inserted == 1
    assert everything() == before
    assert admin.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone() == (0,)


def test_a_table_with_a_feed_keeps_it_untouched_by_previews(orders, app, engine, stream_table, database):
    table = stream_table(ROWS, name="shown", loads=False)
    app.execute("select pgtrickle.alter_stream_table('shown', keep_changes => '1d')")
    table.refresh()
    orders.change("delete from orders where id = 1")
    assert preview(engine, "shown").rows_deleted == 1
    table.refresh()
    assert added_up(changes(database.dsn(APP), "shown")) == content_of(app, "shown")


def test_a_table_over_stream_tables_is_previewed_together_with_them(orders, app, engine, stream_table):
    stream_table(GROUPS, name="below")
    above = stream_table("select sum(total) as total, count(*) as n from below", name="above")
    orders.change("insert into orders values (9, 'west', 1)")
    found = preview(engine, "above")
    before = content_of(app, "above")
    outcome = local.preview(engine, "above")
    assert outcome.changes == found.changes
    done = refresh(engine, "above")
    assert (done.action, done.rows_inserted, done.rows_deleted) == (
        found.action,
        found.rows_inserted,
        found.rows_deleted,
    )
    assert difference(found) == difference_of(before, content_of(app, "above"))
    assert above.rows()


def test_many_rows_are_counted_and_some_are_shown(orders, app, engine, stream_table):
    stream_table(ROWS, name="shown", loads=False)
    orders.change("insert into orders select n, 'r', n from generate_series(10, 2009) n")
    found = preview(engine, "shown")
    # two of the three rows that are there are equal
    assert (found.action, found.rows_inserted, len(found.changes)) == (Action.REINITIALIZE, 2003, 1000)
    assert found.is_truncated
    assert len(found.first(7).changes) == 7
    assert all(change.change is ChangeKind.INSERT for change in found.changes)


def test_what_stops_a_refresh_stops_its_preview(orders, app, engine, stream_table):
    stream_table(ROWS, name="shown")
    app.execute("select pgtrickle.gate_source('orders')")
    with pytest.raises(SourceGated):
        preview(engine, "shown")
    app.execute("select pgtrickle.ungate_source('orders')")
    app.execute("select pgtrickle.alter_stream_table('shown', status => 'SUSPENDED')")
    with pytest.raises(Suspended):
        preview(engine, "shown")


def test_a_preview_has_a_time_limit(orders, app, engine, stream_table):
    query = "select count(*) as n from generate_series(1, 30000000) g, orders"
    app.execute("select pgtrickle.create_stream_table('slow', %s, null, 'FULL')", (query,))
    with pytest.raises(PreviewTimedOut, match="did not finish within"):
        preview(engine, "slow", 0.5)


@pytest.mark.diverges
def test_a_table_that_diverged_is_previewed_as_the_load_that_repairs_it(
    orders, app, admin, engine, stream_table
):
    table = stream_table(ROWS, name="shown")
    admin.execute("alter table shown disable trigger pgtrickle_guard")
    admin.execute("delete from shown where region = 'north'")
    admin.execute("alter table shown enable always trigger pgtrickle_guard")
    orders.change("delete from orders where id = 1")
    before = content_of(app, "shown")
    found = preview(engine, "shown")
    outcome = table.refresh()
    assert (found.action, outcome.action) == (Action.REINITIALIZE, Action.REINITIALIZE)
    assert difference(found) == difference_of(before, content_of(app, "shown"))


@pytest.fixture
def served(orders, app, engine, database, way, monkeypatch):
    """The address of the owner while a sidecar runs; nothing may start a Spark."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a command started a Spark although a sidecar runs")

    monkeypatch.setattr("pgtrickle.pipeline.session.open_spark", refuse)
    app.execute("select pgtrickle.create_stream_table('shown', %s, null)", (GROUPS,))
    with running(engine):
        eventually(lambda: app.execute("select count(*) from shown").fetchone() == (2,))
        orders.change("insert into orders values (9, 'west', 1.50)")
        yield way(database.server, database.name, APP)


@pytest.mark.light
def test_a_sidecar_answers_the_command_line_python_and_sql(served, app, database, monkeypatch, capsys):
    monkeypatch.setenv("PGTRICKLE_DSN", served)
    assert run(["preview", "shown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The next refresh of public.shown: DIFFERENTIAL, +1 −0 rows (1 change row")
    assert out.endswith('+ {"region": "west", "total": 1.5, "n": 1}\n')
    assert run(["preview", "shown", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changes"][0]["row_text"] == "(west,1.50,1)"
    with pgtrickle.connect(served) as trickle:
        assert str(trickle.preview("shown").changes[0].data["total"]) == "1.50"
        cut = trickle.preview("shown", max_rows=0)
        assert (cut.changes, cut.is_truncated, cut.rows_inserted) == ((), True, 1)
        assert repr(trickle) == "<Trickle without engine>"
    for _ in range(2):
        rows = app.execute("select * from pgtrickle.preview_refresh('shown')").fetchall()
        assert [row[0] for row in rows] == ["DIFFERENTIAL"]
        assert rows[0][2:] == (
            1,
            0,
            False,
            "insert",
            1,
            {"region": "west", "total": 1.5, "n": 1},
            "(west,1.50,1)",
        )
    assert app.execute("select count(*) from shown").fetchone() == (2,)
    app.execute("select pgtrickle.refresh_stream_table('shown')")
    rows = app.execute(
        "select action, rows_inserted, change from pgtrickle.preview_refresh('shown')"
    ).fetchall()
    assert rows == [("NO_DATA", 0, None)]


@pytest.mark.light
def test_sql_asks_inside_a_transaction_and_two_sessions_ask_at_once(served, app, connect):
    other = connect(APP)
    with app.transaction():
        app.execute("create table mine (x int)")
        app.execute("select * from pgtrickle.preview_refresh('shown')")
        # the request ended with the call, not with the transaction
        held = "select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        assert app.execute(held).fetchall() == []
    found: list[object] = []
    ask = "select rows_inserted from pgtrickle.preview_refresh('shown')"
    thread = threading.Thread(target=lambda: found.extend(other.execute(ask).fetchall()))
    thread.start()
    assert app.execute(ask).fetchall() == [(1,)]
    thread.join(90)
    assert found == [(1,)]
    with app.transaction(force_rollback=True):
        app.execute("set transaction isolation level repeatable read")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            app.execute(ask)


def test_only_the_owner_who_may_read_gets_a_preview(served, app, admin, database):
    admin.execute("create role stranger login password 'x'")
    try:
        admin.execute(f"alter role stranger password '{database.server.password}'")
        admin.execute("grant select on shown to stranger")
        with pytest.raises(PermissionDenied):
            preview_served(database.dsn("stranger"), "shown", 30)
        with (
            database.connect("stranger", autocommit=True) as stranger,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            stranger.execute("select * from pgtrickle.preview_refresh('shown')")
        app.execute("revoke select on shown from app")
        with pytest.raises(PermissionDenied):
            preview_served(database.dsn(APP), "shown", 30)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("select * from pgtrickle.preview_refresh('shown')")
        assert preview_served(database.dsn(TRICKLE), "shown", 30) is not None
    finally:
        admin.execute("drop owned by stranger")
        admin.execute("drop role stranger")
