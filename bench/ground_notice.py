"""How long an idle sidecar takes to notice what changed below its stream tables, with no write."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

from bench.crowd import create
from bench.figures import Figure, at_most
from bench.freshness import refreshes
from bench.machine import load
from bench.serving import PATIENCE, serving, wait_until_loaded
from bench.stage import Place, Stage
from tests.fixtures.waiting import eventually

LIMIT: Final = 2.0
SOURCES: Final = """
create type mood as enum ('sad', 'ok');
create type pair as (a int, b int);
create domain small as int;
create text search configuration words (copy = pg_catalog.english);
create function as_word(m mood) returns text immutable language sql return 'a mood';
create function deep(n int) returns int immutable language sql return n + 1;
create function top(n int) returns int immutable language plpgsql as 'begin return public.deep(n); end';
create table things (id int primary key, n int, m mood, d small, p pair, w text);
insert into things select n, n, 'ok', n, (n, n)::pair, 'running ' || n from generate_series(1, 100) n;
create table watched as select n as id, n from generate_series(1, 100) n;
create view seen as select id, n, n * 2 as doubled from watched where n < 50;
create table parts (id int, kind int) partition by list (kind);
create table parts_1 partition of parts for values in (1);
create table parts_2 partition of parts for values in (2);
insert into parts select n, n % 2 + 1 from generate_series(1, 100) n;
create table parents (id int);
create table children () inherits (parents);
insert into children select n from generate_series(1, 100) n;
"""
STREAM_TABLES: Final = {
    "things_kept": "select id, n, m::text as m, d + 0 as d, (p).a as a, top(n) as t,"
    " to_tsvector('public.words', w)::text as w from things",
    "seen_kept": "select id, n from seen",
    "parts_kept": "select kind, count(*) as n from parts group by kind",
    "family_kept": "select id from parents",
}
DROP_A_TRIGGER: Final = """
do $$ begin execute (select format('drop trigger %I on things', tgname) from pg_trigger
    where tgrelid = 'things'::regclass and not tgisinternal order by tgname limit 1); end $$"""
# each with the stream table that must notice it; all of them load it anew
CHANGES: Final = (
    ("things_kept", "alter table things alter column n type int using n * 2"),
    ("things_kept", "alter type mood rename value 'ok' to 'fine'"),
    ("things_kept", "alter type mood add value 'glad'"),
    ("things_kept", "alter type pair add attribute c int"),
    ("things_kept", "alter type pair rename attribute b to bb"),
    ("things_kept", "alter type pair rename to couple"),
    ("things_kept", "alter domain small add constraint low check (value < 1000)"),
    ("things_kept", "alter domain small drop constraint low"),
    ("things_kept", "create or replace function deep(n int) returns int immutable language sql return n + 2"),
    ("things_kept", "alter function top(int) strict"),
    ("things_kept", "create function top(n bigint) returns int immutable language sql return 0"),
    ("things_kept", "create cast (mood as text) with function as_word(mood)"),
    ("things_kept", "drop cast (mood as text)"),
    ("things_kept", "alter text search configuration words alter mapping for asciiword with simple"),
    ("things_kept", "alter table things disable trigger user; alter table things enable trigger user"),
    ("things_kept", DROP_A_TRIGGER),
    ("things_kept", "alter table things_kept disable trigger pgtrickle_guard"),
    ("things_kept", "alter table things drop constraint things_pkey"),
    ("seen_kept", "create or replace view seen as select id, n, n * 2 as doubled from watched where n < 90"),
    ("seen_kept", "alter view seen rename column doubled to twice"),
    ("parts_kept", "alter table parts detach partition parts_2"),
    ("parts_kept", "alter table parts attach partition parts_2 for values in (2)"),
    ("parts_kept", "create table parts_3 partition of parts for values in (3)"),
    ("parts_kept", "drop table parts_3"),
    ("family_kept", "alter table children no inherit parents"),
    ("family_kept", "alter table children inherit parents"),
    ("family_kept", "create table grandchildren () inherits (children)"),
)


@dataclass(frozen=True, slots=True)
class Noticed:
    """One change: when it was committed, and when its notice was."""

    table: str
    committed: datetime
    noticed: datetime

    @property
    def seconds(self) -> float:
        """From one commit to the other."""
        return (self.noticed - self.committed).total_seconds()


def ground_notice(stage: Stage) -> list[Figure]:
    """One change after another, each at a random moment between two polls of an idle sidecar."""
    drawn, noticed = random.Random(1), []
    with stage.database("ground_notice") as place:
        place.connection.execute(SOURCES)
        for name, query in STREAM_TABLES.items():
            create(place.connection, name, query, "calculated", "AUTO")
        place.settle()
        before = load()
        with serving(place):
            wait_until_loaded(place)
            for table, statement in CHANGES:
                eventually(lambda: _is_idle(place), seconds=PATIENCE)
                time.sleep(drawn.random())
                noticed.append(_noticed(place, table, statement))
            eventually(lambda: _is_idle(place), seconds=PATIENCE)
        place.trickle.verify()
        took = [one.seconds for one in noticed]
        followed = _followed(place, noticed)
    note = (
        f"half within {median(took):.3g} s; loaded anew half within {median(followed):.3g} s, all within"
        f" {max(followed):.3g} s; load of the machine {before:g} at the start, {load():g} at the end"
    )
    what = f"{len(took)} changes below stream tables, all noticed within"
    samples = {"noticed, seconds": took, "loaded anew, seconds": followed}
    return [Figure(what, max(took), "s", at_most(LIMIT), note, samples)]


def _noticed(place: Place, table: str, statement: str) -> Noticed:
    """Run a statement, and wait until the sidecar has recorded what follows for the stream table."""
    before = _recorded(place, table)
    with place.connection.transaction():
        place.connection.execute(statement)
        (xid,) = _row(place, "select pg_current_xact_id()::text")
    eventually(lambda: _recorded(place, table) != before, seconds=PATIENCE)
    (committed,) = _row(place, "select pg_xact_commit_timestamp(%s::xid8::xid)", xid)
    (noticed,) = _row(place, "select pg_xact_commit_timestamp(%s::xid)", _recorded(place, table))
    return Noticed(table, committed, noticed)


def _followed(place: Place, noticed: Sequence[Noticed]) -> list[float]:
    """Seconds from each change to the commit of the refresh that loaded its stream table anew."""
    shown = refreshes(place.connection)
    return [
        min(
            (refresh.committed - one.committed).total_seconds()
            for refresh in shown[one.table]
            if refresh.seen >= one.noticed
        )
        for one in noticed
    ]


def _recorded(place: Place, table: str) -> str:
    """The transaction that has last compared the ground of a stream table and found a difference."""
    (xid,) = _row(
        place,
        "select g.xmin::text from pgtrickle.pgt_ground g join pgtrickle.pgt_stream_tables s using (pgt_id)"
        " where s.pgt_name = %s and g.kind = 'itself'",
        table,
    )
    return str(xid)


def _is_idle(place: Place) -> bool:
    (is_idle,) = _row(
        place,
        "select bool_and(status = 'ACTIVE' and is_populated and not needs_reinit)"
        " and not exists (select from pgtrickle_internal.moved_ground()) from pgtrickle.pgt_stream_tables",
    )
    return bool(is_idle)


def _row(place: Place, query: str, *values: object) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = place.connection.execute(query, values).fetchone()
    assert row is not None
    return row
