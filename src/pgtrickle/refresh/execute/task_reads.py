"""Plans the reads of a change that reaches more rows than the driver may hold.

The driver keeps what it has read, and continues with reads that are likely to be small, because their keys
make the others smaller. Every other read becomes a query for tasks. If the keys of a lookup are not in
memory, PostgreSQL finds them by the query that would have read them. Failing that, tasks read all rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from pgtrickle.changes.keys import ALWAYS, KeyQuery, LookupKeys, any_of
from pgtrickle.changes.memory import TooMuch
from pgtrickle.changes.read import inserted_query, is_empty, read_one, read_query, stored_query
from pgtrickle.changes.relations import Ends
from pgtrickle.model.carrier import STRING
from pgtrickle.pipeline.ranges import PageRanges, page_ranges
from pgtrickle.pipeline.source import PagedQuery, TaskQuery
from pgtrickle.plan.reads import AGAIN, WEIGHT, Lookup, Read, ReadKind
from pgtrickle.postgres.column_arrays import PAGES, PageRange
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.refresh.execute.compute import ProgramRun

MOST_INNER: Final = 12
"""The most queries for keys that a query may contain; beyond that it reads all rows."""
SCAN_SHARE: Final = 0.5
"""A lookup that costs less than this part of a scan is not split by ranges of pages."""
SCAN_TIMES: Final = 3.0
"""Nor is a lookup that costs this many times a scan: each range would repeat most of the work."""
_COLUMN: Final = re.compile(r't\.(\w+|"([^"]|"")+")')
"""A column of what is read, as SQL."""
EVERYWHERE: Final = PageRanges((), None)


@dataclass(frozen=True, slots=True)
class PartialRead:
    """What the driver had read when it reached too many rows, and the reason to stop there."""

    tables: Mapping[str, pa.Table]
    reason: str


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A part of a read: its rows as SQL, and, if a task can read it column by column, how."""

    rows: sql.Composable
    paged: sql.Composable | None = None
    pages: PageRange | None = None
    step: int | None = None

    def for_task(self, connection: Connection) -> TaskQuery:
        """What a task runs."""
        if self.paged is None or self.pages is None or self.step is None:
            return self.rows.as_string(connection)
        return PagedQuery(self.paged.as_string(connection), self.pages, self.step)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The rows that the driver holds, and the queries for all others, each by the name of its read."""

    held: Mapping[str, pa.Table]
    queries: Mapping[str, list[ReadQuery]]


@dataclass(frozen=True, slots=True)
class Splitting:
    """The most ranges of pages that a query is split into, and the least pages of a range."""

    parts: int
    least_pages: int


def plan_remaining_reads(run: ProgramRun, partial: PartialRead, splitting: Splitting) -> ReadPlan:
    """Plan everything that the driver has not read yet, in the order of the reads."""
    held, inner, ends = dict(partial.tables), dict[str, KeyQuery](), run.ends
    queries: dict[str, list[ReadQuery]] = {}
    keys = LookupKeys(held, inner, _marked_lookups(run.program.reads))
    for read in run.program.reads:
        if read.name in held:
            continue
        usable = keys if read.kind is ReadKind.ROWS else replace(keys, queries={})
        found = _small_rows(run, read, usable, splitting)
        if found is not None:
            held[read.name] = found
            continue
        queries[read.name] = _queries(run.session.read, read, ends, usable, splitting)
        size = 1 + sum(inner[name].size for name in _providers(read) if name in inner)
        if size <= MOST_INNER and read.kind is not ReadKind.ANSWER:
            inner[read.name] = KeyQuery(read_query(read, ends, usable), size)
    return ReadPlan(held, queries)


def plan_whole_reads(
    run: ProgramRun, reads: Sequence[Read], splitting: Splitting, *, holds_small: bool
) -> ReadPlan:
    """Plan to read every source as a whole, once; with `holds_small` the driver reads the small ones now."""
    held: dict[str, pa.Table] = {}
    queries: dict[str, list[ReadQuery]] = {}
    for read in reads:
        if read.earlier:
            # the first read of a source finds all of its rows
            queries[read.name] = []
            continue
        ranges = _ranges(run.session.read, read, splitting)
        is_small = holds_small and read.kind is ReadKind.ROWS and not ranges.ranges
        found = _try_read(run, read, None) if is_small else None
        if found is not None:
            held[read.name] = found
        else:
            queries[read.name] = _split_queries(read, run.ends, None, ranges)
    return ReadPlan(held, queries)


def _marked_lookups(reads: tuple[Read, ...]) -> frozenset[Lookup]:
    """Lookups whose rows a later read of the source leaves out."""
    return frozenset(lookup for read in reads for lookup in read.earlier)


def _providers(read: Read) -> set[str]:
    return {provider.read for lookup in read.lookups for provider in lookup.providers}


def _small_rows(run: ProgramRun, read: Read, keys: LookupKeys, splitting: Splitting) -> pa.Table | None:
    """The rows of a read that is likely to be small, if it is."""
    if is_empty(read, keys):
        return read_one(read, run.session.read, run.ends, keys, run.holding)
    if read.kind is ReadKind.ANSWER or not all(map(keys.are_held, read.lookups)):
        return None
    if read.kind is ReadKind.ROWS and _ranges(run.session.read, read, splitting).ranges:
        return None
    return _try_read(run, read, keys)


def _try_read(run: ProgramRun, read: Read, keys: LookupKeys | None) -> pa.Table | None:
    try:
        with run.session.bounded_reads():
            return read_one(read, run.session.read, run.ends, keys, run.holding)
    except TooMuch:
        return None


def _queries(
    connection: Connection, read: Read, ends: Ends, keys: LookupKeys, splitting: Splitting
) -> list[ReadQuery]:
    """The queries that together read it; none if an earlier read of its source finds all rows."""
    if read.earlier and any_of(read.earlier, keys) is ALWAYS:
        return []
    ranges = _ranges(connection, read, splitting)
    if ranges.ranges and not _is_scan(connection, read, ends, keys):
        ranges = EVERYWHERE
    return _split_queries(read, ends, keys, ranges)


def _split_queries(read: Read, ends: Ends, keys: LookupKeys | None, ranges: PageRanges) -> list[ReadQuery]:
    """A query for each range, and one that subtracts what the window inserted."""
    if not ranges.ranges:
        return [ReadQuery(_without_earlier(read, read_query(read, ends, keys)))]
    by_columns = ranges.step is not None and _is_bounded(read)
    paged = _without_earlier(read, stored_query(read, ends, keys, PAGES)) if by_columns else None
    queries = [
        ReadQuery(_without_earlier(read, read_query(read, ends, keys, r.condition)), paged, r, ranges.step)
        for r in ranges.ranges
    ]
    if read.is_changed:
        queries.append(ReadQuery(_without_earlier(read, inserted_query(read, ends, keys))))
    return queries


def _is_bounded(read: Read) -> bool:
    """Whether what is read of a page is not much larger than the page: no text is computed."""
    return all(
        field.carrier.form is not STRING or _COLUMN.fullmatch(expression)
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def _without_earlier(read: Read, query: sql.Composable) -> sql.Composable:
    """The query without the rows that an earlier read finds."""
    if not read.earlier:
        return query
    names = [field.name for field in read.fields] + [WEIGHT]
    return sql.SQL("select {} from ({}) as r where not r.{}").format(
        sql.SQL(", ").join(map(sql.Identifier, names)), query, sql.Identifier(AGAIN)
    )


def _ranges(connection: Connection, read: Read, splitting: Splitting) -> PageRanges:
    if read.kind is not ReadKind.ROWS or read.source is None:
        return EVERYWHERE
    return page_ranges(connection, read.source, splitting.parts, least_pages=splitting.least_pages)


def _is_scan(connection: Connection, read: Read, ends: Ends, keys: LookupKeys) -> bool:
    """Whether the lookup costs PostgreSQL about as much as a scan of the source."""
    if not read.lookups or any_of(read.lookups, keys) is ALWAYS:
        return True
    scan = _plan_cost(connection, read_query(replace(read, lookups=(), earlier=()), ends, keys))
    lookup = _plan_cost(connection, read_query(read, ends, keys))
    return SCAN_SHARE * scan <= lookup <= SCAN_TIMES * scan


def _plan_cost(connection: Connection, query: sql.Composable) -> float:
    row: Any = connection.execute(sql.SQL("explain (format json) {}").format(query)).fetchone()
    return float(row[0][0]["Plan"]["Total Cost"])
