"""Keeps the feeds of stream tables within their bounds."""

from __future__ import annotations

from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


def prune_feeds(connection: Connection) -> None:
    """Remove the oldest changes of feeds that are past their bounds, each in a transaction of its own."""
    rows = connection.execute(load("pgtrickle.catalog", "sql/queries/feeds_to_prune.sql")).fetchall()
    for (table,) in rows:
        connection.execute("select pgtrickle_internal.prune_feed(%s)", (table,))
