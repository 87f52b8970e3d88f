"""Noticing that something a stream table relies on has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrickle.model.errors import CommandRefused, SourceChanged
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError, refused

Fingerprint = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a dependency, as a sentence without its full stop."""

    what: str
    is_gone: bool = False


def changed(connection: Connection, table: StreamTableId) -> tuple[Change, ...]:
    """What has changed under a stream table since its query was analysed; usually nothing.

    Inside a snapshot it tells what has changed as of that snapshot.
    """
    rows = connection.execute(
        "select source_type, source_name, stored, present from pgtrickle.changed_dependencies(%s)", (table,)
    ).fetchall()
    found = (difference(kind, name, stored, present) for kind, name, stored, present in rows)
    return tuple(change for change in found if change is not None)


def any_changed(connection: Connection, tables: Sequence[StreamTableId]) -> bool:
    """Whether something has changed under one of the stream tables, as `changed` tells it."""
    rows = connection.execute(
        "select d.source_type, d.source_name, d.stored, d.present from unnest(%s::bigint[]) as s(id)"
        " cross join lateral pgtrickle.changed_dependencies(s.id) d",
        (list(tables),),
    ).fetchall()
    return any(difference(kind, name, stored, present) for kind, name, stored, present in rows)


def difference(kind: str, name: str, stored: Fingerprint, present: Fingerprint | None) -> Change | None:
    """How two fingerprints of one dependency differ; None where nobody can rely on the difference."""
    noun = kind.replace("_", " ")
    if present is None:
        return Change(f"{noun} {name} was dropped", is_gone=True)
    if stored["name"] != present["name"]:
        return Change(f"{noun} {name} is now called {present['name']}")
    if kind in ("view", "function"):
        return Change(f"{noun} {name} was replaced")
    return _table_difference(name, stored, present)


def reanalyse(connection: Connection, table: StreamTableId, reason: str) -> None:
    """Fit dependencies, buffers and triggers to the query again, and have everything computed anew.

    Raises SourceChanged where the query can no longer be followed. A transaction of its own.
    """
    try:
        with connection.transaction():
            connection.execute("select pgtrickle.reanalyse(%s, %s)", (table, reason))
    except DatabaseError as error:
        refusal: CommandRefused = refused(error)
        raise SourceChanged(f"{reason}: {refusal.message}", hint=refusal.hint) from error


def forget_dropped(connection: Connection) -> list[str]:
    """Clean up after tables dropped or renamed behind our back; the names of stream tables that are gone."""
    with connection.transaction():
        gone = connection.execute(
            "select s.pgt_id, format('%I.%I', s.pgt_schema, s.pgt_name), pgtrickle.forget(s.pgt_id)"
            " from pgtrickle.pgt_stream_tables s"
            " where not exists (select from pg_class c where c.oid = s.pgt_relid)"
        ).fetchall()
        connection.execute(
            "update pgtrickle.pgt_stream_tables s"
            " set pgt_schema = n.nspname, pgt_name = c.relname, pgt_owner = c.relowner"
            " from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = s.pgt_relid"
            " and (s.pgt_schema, s.pgt_name, s.pgt_owner) is distinct from (n.nspname, c.relname, c.relowner)"
        )
    return [name for _, name, _ in gone]


def _table_difference(name: str, stored: Fingerprint, present: Fingerprint) -> Change | None:
    for number, column in stored["columns"].items():
        now = present["columns"].get(number)
        if now is None:
            return Change(f"column {column[0]} of {name} was dropped", is_gone=True)
        if now[0] != column[0]:
            return Change(f"column {column[0]} of {name} is now called {now[0]}")
        if now != column:
            return Change(f"column {column[0]} of {name} has another type or definition")
    if stored["tree"] != present["tree"]:
        return Change(f"the partitions or children of {name} have changed")
    if stored["row_security"] != present["row_security"]:
        return Change(f"row-level security of {name} was switched")
    # a new key changes nothing; one that is gone may have been relied on
    if any(key not in present["keys"] for key in stored["keys"]):
        return Change(f"{name} has lost a key")
    return None
