"""Publishes stream tables by logical replication, and tells how far the subscribers are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.commands.define import call, call_for_text
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import check_writable
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True, repr=False)
class Publication(Record):
    """The publication of a stream table, and what keeps subscribers from using it."""

    name: str
    publication: str
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class PublicationStatus(Record):
    """A publication that a stream table belongs to, and how far one of its subscribers is.

    Without a known subscriber, everything about the slot is None. `slot_state` is `active`, `inactive`,
    `lost` or `missing`.
    """

    table_columns: ClassVar = ("stream_table", "publication", "slot", "slot_state", "lag_bytes", "is_late")

    stream_table: str
    publication: str | None
    slot: str | None
    confirmed_flush_lsn: str | None
    lag_bytes: int | None
    active: bool | None
    slot_state: str | None
    is_late: bool
    since: datetime | None


def publish(dsn: str, name: str, publication: str | None = None) -> Publication:
    """Create a publication for a stream table, unless it has one."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        known = check_known(connection, name)
        arguments = {"name": known, "publication": publication}
        made, notices = call_for_text(connection, "stream_table_to_publication", arguments)
        return Publication(known, made, tuple(notices))


def unpublish(dsn: str, name: str) -> list[str]:
    """Drop the publication that `publish` has created; return the notices about it."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        return call(connection, "drop_stream_table_publication", {"name": check_known(connection, name)})


def publications(dsn: str) -> list[PublicationStatus]:
    """The publications of stream tables and their subscribers, by name."""
    with open_installed(dsn) as connection:
        rows = connection.execute(load("pgtrickle.commands", "sql/publications.sql"))
        return [PublicationStatus(*row) for row in rows]


def register_subscriber(dsn: str, name: str, slot: str) -> None:
    """Record that a replication slot reads a stream table."""
    _call_about(dsn, "register_subscriber", name, "slot", slot)


def unregister_subscriber(dsn: str, name: str, slot: str) -> None:
    """Forget that a replication slot reads a stream table."""
    _call_about(dsn, "unregister_subscriber", name, "slot", slot)


def _call_about(dsn: str, function: str, name: str, argument: str, value: str) -> None:
    with open_installed(dsn) as connection:
        check_writable(connection)
        call(connection, function, {"name": check_known(connection, name), argument: value})
