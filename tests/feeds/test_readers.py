"""Readers of a feed: who may read, with which types, several at once, and while sidecars are killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg
import pytest

import pgtrickle
from pgtrickle.commands.changes import change_point, changes
from pgtrickle.interfaces.cli.application import run
from pgtrickle.model.changes import Change
from pgtrickle.model.errors import ChangesNotKept, PermissionDenied, PgTrickleError, UnknownStreamTable
from tests.end_to_end.stopping_sidecar import STEPS
from tests.end_to_end.test_crashes import sidecar
from tests.feeds.conftest import added_up, content_of
from tests.feeds.test_changes import CHANGES, GROUPS, ROWS
from tests.fixtures.databases import APP
from tests.fixtures.sidecars import running
from tests.fixtures.spark import gateway_of
from tests.fixtures.waiting import eventually

STRANGER = "stranger"


@pytest.fixture
def kept(orders, app, stream_table):
    """A stream table of groups that keeps its changes from its first load on."""
    table = stream_table(GROUPS, name="kept", loads=False)
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '1d')")
    table.refresh()
    return table


@pytest.fixture
def stranger(admin, database) -> Iterator[str]:
    """The address of a role that owns nothing."""
    admin.execute(f"create role {STRANGER} login password '{database.server.password}'")
    yield database.dsn(STRANGER)
    admin.execute(f"drop owned by {STRANGER}")
    admin.execute(f"drop role {STRANGER}")


class Follower:
    """Follows a feed in a thread."""

    def __init__(self, dsn: str, since: int | None = None) -> None:
        self.found: list[Change] = []
        self.failure: PgTrickleError | None = None
        self._stop = threading.Event()
        self._changes = changes(dsn, "kept", since, follow=True, stop=self._stop)
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for change in self._changes:
                self.found.append(change)
        except PgTrickleError as error:
            self.failure = error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(90)
        assert not self._thread.is_alive()

    def ends(self) -> PgTrickleError:
        self._thread.join(90)
        assert self.failure is not None
        return self.failure


@contextmanager
def following(dsn: str, since: int | None = None) -> Iterator[Follower]:
    follower = Follower(dsn, since)
    try:
        yield follower
    finally:
        follower.stop()


def points(found: list[Change]) -> list[int]:
    return [change.point for change in found]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_follower_misses_nothing_and_sees_nothing_twice_if_a_sidecar_is_killed(
    orders, app, kept, spark, dsn, database, step
):
    with following(database.dsn(APP)) as follower:
        orders.change(*CHANGES[:3])
        with sidecar(dsn, "kept", step, gateway_of(spark)) as process:
            assert process.stdout is not None
            assert [next(process.stdout).strip(), next(process.stdout).strip()] == ["started", "halted"]
        kept.refresh()
        orders.change(*CHANGES[3:])
        kept.refresh()
        newest = change_point(database.dsn(APP), "kept")
        eventually(lambda: bool(follower.found) and follower.found[-1].point == newest)
    assert points(follower.found) == sorted(set(points(follower.found)))
    assert added_up(follower.found) == content_of(app, "kept")


@pytest.mark.light
def test_two_followers_and_a_pooler_see_the_same_while_a_sidecar_runs(
    orders, app, kept, engine, database, way
):
    app.execute("select pgtrickle.alter_stream_table('kept', schedule => '100ms')")
    pooled = way(database.server, database.name, APP)
    with running(engine), following(database.dsn(APP)) as first, following(pooled) as second:
        for statement in CHANGES:
            orders.change(statement)
        expected = Counter(f"(r{n},{total},{count})" for n, total, count in GROUPED)
        eventually(lambda: content_of(app, "kept") == expected)
        newest = change_point(database.dsn(APP), "kept")
        eventually(lambda: all(f.found and f.found[-1].point == newest for f in (first, second)))
    assert first.found == second.found
    assert added_up(first.found) == content_of(app, "kept")


GROUPED = ((0, "408.00", 16), (1, "425.00", 17), (2, "442.00", 17))
"""What the groups of the last of the changes are."""


def test_rows_and_point_of_one_snapshot_belong_together(orders, app, kept, database):
    dsn = database.dsn(APP)
    stop = threading.Event()

    def change() -> None:
        number = 100
        while not stop.is_set():
            number += 1
            orders.change(f"insert into orders values ({number}, 'r{number % 5}', {number})")
            kept.refresh()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        with database.connect(APP) as reader:
            seen: list[tuple[int, Counter[str]]] = []
            while len({point for point, _ in seen}) < 5:
                reader.execute("set transaction isolation level repeatable read")
                content = content_of(reader, "kept")
                row = reader.execute("select pgtrickle.change_point('kept')").fetchone()
                assert row is not None
                seen.append((row[0], content))
                reader.rollback()
    finally:
        stop.set()
        thread.join(90)
    everything = list(changes(dsn, "kept"))
    for point, content in seen:
        assert added_up(change for change in everything if change.point <= point) == content
        assert added_up((c for c in everything if c.point > point), content) == content_of(app, "kept")


def test_pages_continue_in_the_middle_of_a_refresh(orders, app, kept, database):
    orders.change("insert into orders select n, 'r' || n, n from generate_series(10, 59) n")
    kept.refresh()
    since, rows = None, []
    while page := app.execute("select * from pgtrickle.changes('kept', %s, 7)", (since,)).fetchall():
        assert len(page) <= 7
        rows += page
        since = page[-1][0]
    assert rows == app.execute("select * from pgtrickle.changes('kept')").fetchall()
    assert len(rows) == 52


COLUMNS = """id int primary key, "a b" numeric, f float8, t text, ts timestamptz, d date, b bytea, j json,
    jb jsonb, ar int[], ta text[], m mood, p positive, c pair, iv interval, "1%s" bpchar(5), u uuid,
    r int4range, x "char", bo boolean, mo money, bi bit(3), v varchar(7), inf numeric"""
VALUES = r"""(1, 12345678901234567890.12345678901234567890, 0.1, 'a"b,(\'')é',
    '2024-02-29 12:00:00.123456+05:30',
    '0044-03-15 BC', '\x00ff', '{"a": 1,  "a": 2, "z": "\u0000"}', '{"n": 1.50}', '[0:1]={1,null}',
    '{"x y",null,"null"}', 'so "so"', 1.500, '(1,"x,y")', '1 mon -2 days 03:00', 'ab',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '[1,5)', 'q', true, 12.34, '101', 'abc', 'NaN'),
    (2, null, 'Infinity', '', 'infinity', null, null, null, null, '{}', null, null, null, null, null, '',
    null, 'empty', '', null, null, null, null, null)"""


@pytest.mark.every_postgres
def test_values_of_every_type_come_back_exactly_in_any_schema(source, app, admin, stream_table, database):
    admin.execute('create schema "Odd Schema" authorization app')
    admin.execute('grant usage on schema "Odd Schema" to trickle')
    app.execute("create type mood as enum ('happy', 'so \"so\"')")
    app.execute("create domain positive as numeric check (value > 0)")
    app.execute("create type pair as (a int, b text)")
    source(f'"Odd Schema"."Sources"({COLUMNS})')
    app.execute(f'insert into "Odd Schema"."Sources" values {VALUES}')
    name = '"Odd Schema"."Kept ""it"""'
    table = stream_table('select * from "Odd Schema"."Sources"', name=name, loads=False)
    app.execute("select pgtrickle.alter_stream_table(%s, keep_changes => '1d 100 rows')", (name,))
    app.execute(
        "set timezone = 'Asia/Kolkata'; set datestyle = 'German'; set bytea_output = 'escape';"
        " set extra_float_digits = 0"
    )
    table.refresh()
    found = list(changes(database.dsn(APP), name))
    assert [change.data["id"] for change in found if change.data] in ([1, 2], [2, 1])
    odd = next(change.data for change in found if change.data and change.data["id"] == 1)
    assert odd["a b"] == Decimal("12345678901234567890.12345678901234567890")
    assert (odd["f"], odd["ts"], odd["b"], odd["m"]) == (
        Decimal("0.1"),
        "2024-02-29T06:30:00.123456+00:00",
        "\\x00ff",
        'so "so"',
    )
    assert (odd["ar"], odd["c"], odd["1%s"], odd["inf"]) == ([1, None], '(1,"x,y")', "ab   ", "NaN")
    same = app.execute(
        f"select count(*) from {name} stored join pgtrickle.changes(%s) c"
        f" on record_image_eq(stored, c.row_text::{name})",
        (name,),
    ).fetchone()
    assert same == (2,)


def test_equal_rows_are_counted(orders, app, stream_table, database):
    table = stream_table(ROWS, name="kept", loads=False)
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '1d')")
    table.refresh()
    orders.change("insert into orders select n, 'south', 5 from generate_series(10, 14) n")
    table.refresh()
    newest = list(changes(database.dsn(APP), "kept"))[-1]
    assert (newest.count, newest.row_text) == (5, "(south,5.00)")


def test_changes_are_for_those_who_may_select(orders, app, kept, stranger, database):
    with pytest.raises(PermissionDenied, match="you may not select from"):
        changes(stranger, "kept")
    with pytest.raises(PermissionDenied):
        change_point(stranger, "kept")
    with psycopg.connect(stranger, autocommit=True) as other:
        assert other.execute("select count(*) from pgtrickle_internal.kept_changes_1").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("select * from pgtrickle_internal.read_changes(1, null, null)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("select * from pgtrickle.pgt_batches")
        app.execute(f"grant select (region) on kept to {STRANGER}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("select * from pgtrickle.changes('kept')")
    app.execute(f"grant select on kept to {STRANGER}")
    assert added_up(changes(stranger, "kept")) == content_of(app, "kept")
    app.execute("alter table kept enable row level security")
    with pytest.raises(PermissionDenied, match="row-level security"):
        changes(stranger, "kept")
    assert list(changes(database.dsn(APP), "kept"))


def test_a_cast_of_somebody_else_does_not_run_when_changes_are_read(
    source, app, admin, stream_table, database
):
    source("things(id int primary key, size int)", rows=[(1, 1)])
    app.execute("create type trap as (x int)")
    table = stream_table("select id, row(size)::trap as t from things", name="kept", mode="FULL", loads=False)
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '1d')")
    table.refresh()
    app.execute(
        "create function spring(trap) returns json language plpgsql as"
        " $$ begin raise exception 'it ran as %', current_user; end $$"
    )
    app.execute("create cast (trap as json) with function spring(trap)")
    rows = admin.execute("select data ->> 't' from pgtrickle.changes('public.kept')").fetchall()
    assert rows == [("(1)",)]


@pytest.mark.light
def test_the_command_line_shows_and_follows_changes(orders, app, kept, database, way, monkeypatch, capsys):
    monkeypatch.setenv("PGTRICKLE_DSN", way(database.server, database.name, APP))
    assert run(["changes", "kept"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.partition("  ")[2] for line in lines) == [
        '+ {"region": "north", "total": 10.0, "n": 1}',
        '+ {"region": "south", "total": 10.0, "n": 2}',
    ]
    newest = lines[-1].split()[0]
    orders.change("delete from orders where id = 1")
    kept.refresh()
    assert run(["changes", "kept", "--since", newest, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["change"], found["row_text"], found["is_last"]) == ("delete", "(north,10.00,1)", True)
    assert run(["changes", "kept", "--since", "now"]) == 0
    assert capsys.readouterr().out == ""
    assert run(["changes", "kept", "--since", "0", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == "PGT-S024"
    assert run(["changes", "kept", "--since", "soon"]) == 2


@pytest.mark.light
def test_python_iterates(orders, app, kept, database, way):
    with pgtrickle.connect(way(database.server, database.name, APP)) as trickle:
        start = trickle.change_point("kept")
        assert [change.point for change in trickle.changes("kept")][-1] == start
        orders.change("insert into orders values (9, 'west', 1)")
        kept.refresh()
        feed = trickle.changes("kept", start, follow=True)
        assert next(feed).data == {"region": "west", "total": Decimal("1.00"), "n": 1}
        assert trickle.status("kept").keep_changes == "1d"
        assert repr(trickle) == "<Trickle without engine>"


def test_psql_reads_typed_rows(orders, app, kept, database):
    program = shutil.which("psql")
    assert program is not None
    query = "select change, (c.row_text::kept).* from pgtrickle.changes('kept') c order by 2"
    done = subprocess.run(
        [program, "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", query, database.dsn(APP)],
        env={**os.environ, "PGOPTIONS": "-c datestyle=German"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "insert|north|10.00|1\ninsert|south|10.00|2\n"


def test_a_follower_is_told_when_the_feed_or_the_table_ends(orders, app, kept, database):
    follower = Follower(database.dsn(APP))
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => 'off')")
    assert isinstance(follower.ends(), ChangesNotKept)
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '1h')")
    follower = Follower(database.dsn(APP))
    app.execute("select pgtrickle.drop_stream_table('kept')")
    assert isinstance(follower.ends(), UnknownStreamTable)


def test_a_rolled_back_alteration_leaves_no_feed(orders, app, stream_table, database):
    stream_table(GROUPS, name="kept")
    with app.transaction(force_rollback=True):
        app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '1d')")
        assert app.execute("select * from pgtrickle.changes('kept')").fetchall() == []
    with pytest.raises(ChangesNotKept):
        changes(database.dsn(APP), "kept")
