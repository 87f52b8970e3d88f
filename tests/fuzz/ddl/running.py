"""Running rounds of random DDL, each in a new database with a sidecar of its own, until time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TypeVar
from uuid import uuid4

from pgtrickle.embedded import Server
from pgtrickle.pipeline.session import Spark, open_spark
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import TEMPLATE, TRICKLE, Templates, create_database, drop_database
from tests.fixtures.servers import new_server
from tests.fixtures.sidecars import running
from tests.fuzz.ddl.playing import Finding, arena, play
from tests.fuzz.ddl.statements import Batch, drawn_batches

Tell = Callable[[str], None]
T = TypeVar("T")


def run(
    server: Server,
    spark: Spark,
    seed: int,
    *,
    seconds: float,
    shrink_seconds: float,
    failures: int,
    tell: Tell,
) -> list[Finding]:
    """Play the rounds of this seed and the following ones until this many have failed."""
    found: list[Finding] = []
    begun = time.monotonic()
    for number in count(seed):
        if time.monotonic() - begun > seconds or len(found) >= failures:
            return found
        finding = play_round(server, spark, drawn_batches(number))
        tell(f"seed {number}: {'failed' if finding else 'settled'}, {time.monotonic() - begun:.0f} s")
        if finding:
            found.append(shrunk(lambda batches: play_round(server, spark, batches), finding, shrink_seconds))
            tell(f"-- found by SEED={number}\n{found[-1]}")
    raise AssertionError("seeds do not end")


def shrunk(
    play_again: Callable[[Sequence[Batch]], Finding | None], finding: Finding, seconds: float
) -> Finding:
    """The same failure with fewer steps, as far as the time allows."""
    deadline = time.monotonic() + seconds
    for candidate in (finding.batches[-1:], *_without_one(finding.batches)):
        if time.monotonic() > deadline:
            break
        if len(candidate) < len(finding.batches) and (again := play_again(candidate)):
            return shrunk(play_again, again, deadline - time.monotonic())
    last = finding.batches[-1]
    for fewer in _without_one(last):
        if time.monotonic() > deadline:
            break
        if fewer and (again := play_again((*finding.batches[:-1], fewer))):
            return shrunk(play_again, again, deadline - time.monotonic())
    return finding


def _without_one(things: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    for number in range(len(things)):
        yield things[:number] + things[number + 1 :]


def play_round(server: Server, spark: Spark, batches: Sequence[Batch]) -> Finding | None:
    """One round in a new database."""
    database = create_database(server, f"ddl_{uuid4().hex}", TEMPLATE)
    try:
        with arena(database) as ready, _engine(database.dsn(TRICKLE), spark) as engine, running(engine):
            return play(ready, batches)
    finally:
        drop_database(database)


@contextmanager
def _engine(dsn: str, spark: Spark) -> Iterator[Engine]:
    engine = Engine(dsn, lambda: spark)
    try:
        yield engine
    finally:
        # the Spark serves the next round too
        engine._spark = None
        engine.close()


@contextmanager
def own_server(version: int) -> Iterator[tuple[Server, Spark]]:
    """A server and a Spark for all rounds."""
    with new_server(version) as server:
        Templates().ensure(server)
        spark = open_spark()
        try:
            yield server, spark
        finally:
            spark.close()
