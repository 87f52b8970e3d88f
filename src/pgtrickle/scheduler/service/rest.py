"""Watches a database in which nothing happens: one connection, one statement a second, no other thread.

A process may serve hundreds of databases, and most of them are idle most of the time. When anything happens,
the loop starts its dispatcher again, which finds out by itself what it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from pgtrickle.model.frontier import Frontier
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

POLL_SECONDS: Final = 1.0
PUBLISH_SECONDS: Final = 5.0
"""How often a sidecar at rest reports that it serves the database; after 15 s without, it counts as gone."""
LONGEST_SECONDS: Final = 900.0
"""After this long, the dispatcher runs for a while even if nothing happened: it maintains the database."""


def rest(
    connection: Connection,
    seen: Frontier,
    seconds: float,
    stop: threading.Event,
    publish: Callable[[Connection], None],
    *,
    has_views: bool,
) -> None:
    """Return when something has happened since the snapshot `seen`, after `seconds`, or when stopped."""
    until = time.monotonic() + min(seconds, LONGEST_SECONDS)
    published_at, ground, installation = 0.0, None, None
    while not stop.is_set() and time.monotonic() < until:
        row = connection.execute(
            load("pgtrickle.scheduler.service", "sql/rest.sql"),
            {"seen": str(seen), "ground": ground, "has_views": has_views},
        ).fetchone()
        assert row is not None
        ground, has_news, found = row
        if has_news or found != (installation or found):
            return
        installation = found
        if time.monotonic() - published_at >= PUBLISH_SECONDS:
            publish(connection)
            published_at = time.monotonic()
        stop.wait(min(POLL_SECONDS, max(0.0, until - time.monotonic())))
