"""Chooses the channels that refreshes of a stream table notify."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.commands.define import call
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import check_writable


@dataclass(frozen=True, slots=True, repr=False)
class Subscription(Record):
    """A channel that refreshes of a stream table notify.

    `is_notified` is false while the role that subscribed may not read the stream table.
    """

    table_columns: ClassVar = ("stream_table", "channel", "subscribed_by", "is_notified")

    stream_table: str
    channel: str
    subscribed_by: str
    subscribed_at: datetime
    is_notified: bool


def subscribe(dsn: str, name: str, channel: str) -> None:
    """Have every refresh that changes a stream table notify a channel."""
    _call(dsn, "subscribe", name, channel)


def unsubscribe(dsn: str, name: str, channel: str) -> None:
    """No longer notify a channel."""
    _call(dsn, "unsubscribe", name, channel)


def subscriptions(dsn: str) -> list[Subscription]:
    """The channels of the stream tables that this role may read, by name."""
    with open_installed(dsn) as connection:
        rows = connection.execute(
            "select stream_table, channel, subscribed_by::text, subscribed_at, is_notified"
            " from pgtrickle.subscriptions order by stream_table, channel"
        )
        return [Subscription(*row) for row in rows]


def _call(dsn: str, function: str, name: str, channel: str) -> None:
    with open_installed(dsn) as connection:
        check_writable(connection)
        call(connection, function, {"stream_table": check_known(connection, name), "channel": channel})
