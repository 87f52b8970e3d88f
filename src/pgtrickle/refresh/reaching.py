"""A change that reaches more rows than the driver may hold: what it still reads, and what others read.

The driver keeps what it has, and goes on with reads that are likely to be small, since their keys make the
others smaller. Every other read becomes a query for tasks. Where the keys of a lookup are not in memory,
PostgreSQL finds them by the query that would have read them; where that does not work, it reads all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from pgtrickle.changes.keys import ALWAYS, Inner, Keys, any_of
from pgtrickle.changes.memory import Holding, TooMuch
from pgtrickle.changes.reading import inserted_query, is_empty, read_one, read_query
from pgtrickle.changes.relations import Ends
from pgtrickle.pipeline.ranges import ctid_ranges
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import AGAIN, WEIGHT, Lookup, Read, ReadKind
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.refresh.session import Session

MOST_INNER: Final = 12
"""A query holds at most so many queries that find keys for it; beyond that it reads all rows."""
SCAN_SHARE: Final = 0.5
"""A lookup that costs less than this part of a scan is one query, and not split by ranges of pages."""
SCAN_TIMES: Final = 3.0
"""Neither is one that costs so many times as much as a scan: most of that would be done for each range."""
EVERYWHERE: Final = "true"


@dataclass(frozen=True, slots=True)
class Reached:
    """What the driver had read when it became too much, and why that was so."""

    tables: Mapping[str, pa.Table]
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What the driver holds, and the queries of everything else, each by the name of its read."""

    held: Mapping[str, pa.Table]
    queries: Mapping[str, list[sql.Composable]]


@dataclass(frozen=True, slots=True)
class Splitting:
    """Into how many ranges of pages a query is split at most, and how many pages a range has at least."""

    parts: int
    least_pages: int


def reading_of(
    session: Session,
    program: Program,
    ends: Ends,
    tables: Mapping[str, pa.Table],
    holding: Holding,
    splitting: Splitting,
) -> Reading:
    """Decide about all that the driver has not read yet, in the order of the reads."""
    held, inner = dict(tables), dict[str, Inner]()
    queries: dict[str, list[sql.Composable]] = {}
    keys = Keys(held, inner, _marked(program.reads))
    for read in program.reads:
        if read.name in held:
            continue
        usable = keys if read.kind is ReadKind.ROWS else replace(keys, queries={})
        found = _held(session, read, ends, usable, holding, splitting)
        if found is not None:
            held[read.name] = found
            continue
        queries[read.name] = _queries(session.read, read, ends, usable, splitting)
        size = 1 + sum(inner[name].size for name in _providers(read) if name in inner)
        if size <= MOST_INNER and read.kind is not ReadKind.ANSWER:
            inner[read.name] = Inner(read_query(read, ends, usable), size)
    return Reading(held, queries)


def whole_reading(
    session: Session,
    reads: Sequence[Read],
    ends: Ends,
    holding: Holding,
    splitting: Splitting,
    *,
    holds_small: bool,
) -> Reading:
    """Read every source as a whole, once; what is small is read here, unless tasks are to read it all."""
    held: dict[str, pa.Table] = {}
    queries: dict[str, list[sql.Composable]] = {}
    for read in reads:
        # the first read of a source has it all
        ranges = () if read.earlier else _ranges(session.read, read, splitting)
        is_small = holds_small and read.kind is ReadKind.ROWS and len(ranges) == 1
        found = _read_here(session, read, ends, None, holding) if is_small else None
        if found is not None:
            held[read.name] = found
        else:
            queries[read.name] = _split(read, ends, None, ranges)
    return Reading(held, queries)


def _marked(reads: tuple[Read, ...]) -> frozenset[Lookup]:
    """Lookups whose rows another read leaves out."""
    return frozenset(lookup for read in reads for lookup in read.earlier)


def _providers(read: Read) -> set[str]:
    return {provider.read for lookup in read.lookups for provider in lookup.providers}


def _held(
    session: Session, read: Read, ends: Ends, keys: Keys, holding: Holding, splitting: Splitting
) -> pa.Table | None:
    """The rows, if they are likely to be few and turn out to be."""
    if is_empty(read, keys):
        return read_one(read, session.read, ends, keys, holding)
    if read.kind is ReadKind.ANSWER or not all(map(keys.are_held, read.lookups)):
        return None
    if read.kind is ReadKind.ROWS and len(_ranges(session.read, read, splitting)) > 1:
        return None
    return _read_here(session, read, ends, keys, holding)


def _read_here(
    session: Session, read: Read, ends: Ends, keys: Keys | None, holding: Holding
) -> pa.Table | None:
    try:
        with session.bounded():
            return read_one(read, session.read, ends, keys, holding)
    except TooMuch:
        return None


def _queries(
    connection: Connection, read: Read, ends: Ends, keys: Keys, splitting: Splitting
) -> list[sql.Composable]:
    """The texts that together read it; none where an earlier read of its source has all rows."""
    if read.earlier and any_of(read.earlier, keys) is ALWAYS:
        return []
    ranges = _ranges(connection, read, splitting)
    if len(ranges) == 1 or not _is_scan(connection, read, ends, keys):
        ranges = (EVERYWHERE,)
    return _split(read, ends, keys, ranges)


def _split(read: Read, ends: Ends, keys: Keys | None, ranges: Sequence[str]) -> list[sql.Composable]:
    """A text for each range; what the window inserted is taken off by one more."""
    if len(ranges) == 1:
        return [_once(read, read_query(read, ends, keys))]
    queries = [_once(read, read_query(read, ends, keys, piece)) for piece in ranges]
    if queries and read.is_changed:
        queries.append(_once(read, inserted_query(read, ends, keys)))
    return queries


def _once(read: Read, query: sql.Composable) -> sql.Composable:
    """Only the rows that no earlier read has."""
    if not read.earlier:
        return query
    names = [field.name for field in read.fields] + [WEIGHT]
    return sql.SQL("select {} from ({}) as r where not r.{}").format(
        sql.SQL(", ").join(map(sql.Identifier, names)), query, sql.Identifier(AGAIN)
    )


def _ranges(connection: Connection, read: Read, splitting: Splitting) -> tuple[str, ...]:
    if read.kind is not ReadKind.ROWS or read.source is None:
        return (EVERYWHERE,)
    return ctid_ranges(connection, read.source, splitting.parts, least_pages=splitting.least_pages)


def _is_scan(connection: Connection, read: Read, ends: Ends, keys: Keys) -> bool:
    """Whether PostgreSQL finds the rows at about the cost of a scan of the source."""
    if not read.lookups or any_of(read.lookups, keys) is ALWAYS:
        return True
    scan = _cost(connection, read_query(replace(read, lookups=(), earlier=()), ends, keys))
    lookup = _cost(connection, read_query(read, ends, keys))
    return SCAN_SHARE * scan <= lookup <= SCAN_TIMES * scan


def _cost(connection: Connection, query: sql.Composable) -> float:
    row: Any = connection.execute(sql.SQL("explain (format json) {}").format(query)).fetchone()
    return float(row[0][0]["Plan"]["Total Cost"])
