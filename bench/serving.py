"""A sidecar at work in this process, beside what is measured."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.stage import Place
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.scheduler.service.loop import RefreshEvent
from tests.fixtures.waiting import eventually

PATIENCE = 600.0
"""Seconds for loading everything that was created."""


@contextmanager
def serving(place: Place) -> Iterator[None]:
    """Schedules are served while this is open; a refresh that failed is told at the end."""
    stop = threading.Event()
    failures: list[PgTrickleError | BaseException] = []

    def note(event: RefreshEvent) -> None:
        if event.error is not None:
            failures.append(event.error)

    def serve() -> None:
        try:
            place.trickle.run(stop, note)
        except BaseException as error:
            failures.append(error)

    sidecar = threading.Thread(target=serve, name="sidecar")
    sidecar.start()
    try:
        yield
    finally:
        stop.set()
        sidecar.join()
    if failures:
        raise failures[0]


def wait_until_loaded(place: Place) -> None:
    """Return once every stream table is ACTIVE."""
    left = "select count(*) from pgtrickle.pgt_stream_tables where status <> 'ACTIVE' or not is_populated"
    eventually(lambda: _count(place, left) == 0, seconds=PATIENCE)


def wait_until_followed(place: Place) -> None:
    """Return once no change waits for a stream table."""
    left = "select coalesce(sum(pending_rows), 0) from pgtrickle.change_buffer_sizes()"
    eventually(lambda: _count(place, left) == 0, seconds=PATIENCE)


def _count(place: Place, query: str) -> int:
    row = place.connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
