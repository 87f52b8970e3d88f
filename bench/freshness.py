"""How long a change waits until a stream table shows it: from the commit of one to that of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.stage import Connection


@dataclass(frozen=True, slots=True)
class Change:
    """A transaction that wrote to a source."""

    source: str
    committed: datetime


@dataclass(frozen=True, slots=True)
class Shown:
    """A refresh: it has seen whatever was committed before `seen`, and was committed itself."""

    seen: datetime
    committed: datetime


def waits(
    changes: Sequence[Change], readers: Mapping[str, Sequence[str]], shown: Mapping[str, Sequence[Shown]]
) -> list[float]:
    """Seconds that each change waited in each reader of its source; every one must have been shown."""
    return [
        (_first(change, shown[reader]).committed - change.committed).total_seconds()
        for change in changes
        for reader in readers[change.source]
    ]


def _first(change: Change, shown: Sequence[Shown]) -> Shown:
    after = [one for one in shown if one.seen >= change.committed]
    assert after, f"a change of {change.source} at {change.committed} was never shown"
    return min(after, key=lambda one: one.committed)


def committed(connection: Connection, sources: Mapping[int, str]) -> list[Change]:
    """When these transactions, each of which wrote to one source, were committed."""
    rows = connection.execute(
        "select x, pg_xact_commit_timestamp(x::text::xid8::xid) from unnest(%s::bigint[]) x", (list(sources),)
    )
    return [Change(sources[xid], when) for xid, when in rows]


def refreshes(connection: Connection) -> dict[str, list[Shown]]:
    """Every refresh in the history that wrote something, by its stream table."""
    found: dict[str, list[Shown]] = {}
    rows = connection.execute(
        "select s.pgt_name, h.data_timestamp, pg_xact_commit_timestamp(h.xmin)"
        " from pgtrickle.pgt_refresh_history h join pgtrickle.pgt_stream_tables s using (pgt_id)"
        " where h.status = 'COMPLETED' and h.action <> 'NO_DATA'"
    )
    for name, seen, when in rows:
        found.setdefault(name, []).append(Shown(seen, when))
    return found
