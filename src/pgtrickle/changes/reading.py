"""The reads of a program as SQL, and as Arrow tables under the snapshot of a refresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from pgtrickle.changes.answers import answer_query, is_empty_answer
from pgtrickle.changes.kept import can_be_kept, found_in
from pgtrickle.changes.keys import ALWAYS, NEVER, any_of, trusted
from pgtrickle.changes.relations import CHANGE, Ends, among, carried, where, window
from pgtrickle.model.carrier import Carrier, Field
from pgtrickle.plan.reads import AGAIN, WEIGHT, Read, ReadKind, Version
from pgtrickle.postgres.arrow import arrow_schema, read_arrow
from pgtrickle.postgres.connection import Connection, sql

Whole = Callable[[Read, Callable[[Read, int], pa.Table]], pa.Table | None]
"""Gives all rows that a read of an unchanged source could find, if they are few enough to be kept."""

_AGAIN = Field(AGAIN, Carrier("boolean", "boolean", "({})", "({})::boolean", True, False))


def read_all(
    reads: tuple[Read, ...],
    connection: Connection,
    ends: Ends,
    *,
    given: Mapping[str, pa.Table] = MappingProxyType({}),
    whole: Whole | None = None,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
) -> dict[str, pa.Table]:
    """Read one after the other, each restricted by the keys that the ones before it found.

    `given` are keys that no read finds; `shared` is what was read already, by the name of the read.
    """
    tables = {**given, **shared}
    for read in reads:
        if read.name not in shared:
            tables[read.name] = _table(read, connection, ends, tables, whole)
    return {read.name: tables[read.name] for read in reads}


def fields_of(read: Read) -> tuple[Field, ...]:
    """The columns that a read gives, beside the weight."""
    return (*read.fields, _AGAIN) if read.earlier else read.fields


def has_weight(read: Read) -> bool:
    """Whether the rows of a read count more, or less, than once, or have nothing else to be seen by."""
    is_compared = read.version in {Version.CHANGED, Version.STAYED}
    return read.kind is not ReadKind.ANSWER or is_compared or not read.fields


def _table(
    read: Read, connection: Connection, ends: Ends, tables: Mapping[str, pa.Table], whole: Whole | None
) -> pa.Table:
    if _is_empty(read, tables):
        return arrow_schema(fields_of(read), has_weight=has_weight(read)).empty_table()
    if whole is not None and can_be_kept(read, tables):
        rows = whole(read, partial(_first, connection, ends))
        if rows is not None:
            return found_in(rows, read, tables)
    query = read_query(read, ends, tables)
    return read_arrow(connection, query, fields_of(read), has_weight=has_weight(read))


def _first(connection: Connection, ends: Ends, read: Read, limit: int) -> pa.Table:
    """At most so many rows of a read."""
    query = sql.SQL("{} limit {}").format(read_query(read, ends, {}), sql.Literal(limit))
    return read_arrow(connection, query, fields_of(read), has_weight=has_weight(read))


def _is_empty(read: Read, tables: Mapping[str, pa.Table]) -> bool:
    """Whether the keys tell already that there is nothing to read."""
    if read.lookups and any_of(read.lookups, tables) is NEVER:
        return True
    return bool(read.parts) and is_empty_answer(read, tables)


def read_query(
    read: Read, ends: Ends, tables: Mapping[str, pa.Table] | None, piece: str | None = None
) -> sql.Composed:
    """The SQL of a read; without tables its lookups are left out and it reads everything.

    `piece` is a condition that takes some of a source's rows, without what the window inserted.
    """
    if read.kind is ReadKind.CHANGES:
        return _changes(read, ends)
    if read.kind is ReadKind.ANSWER:
        return answer_query(read, ends, tables)
    return _rows(read, ends, tables, piece)


def _changes(read: Read, ends: Ends) -> sql.Composed:
    return sql.SQL(
        "select {fields}, sum(t.{change})::bigint as {weight} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) <> 0"
    ).format(
        fields=carried(read),
        weight=sql.Identifier(WEIGHT),
        change=CHANGE,
        window=window(read, ends),
        where=among([sql.SQL("t.{} <> 0").format(CHANGE)]),
        positions=_positions(len(read.fields)),
    )


def _rows(read: Read, ends: Ends, tables: Mapping[str, pa.Table] | None, piece: str | None) -> sql.Composed:
    """Rows as they are now, less those that the window inserted."""
    assert read.source is not None
    fields, found = _fields_and_lookups(read, tables)
    pieces = [trusted(piece)] if piece else []
    now = sql.SQL("select {}, 1::bigint as {} from {} as t{}").format(
        fields,
        sql.Identifier(WEIGHT),
        sql.Identifier(read.source.table.schema, read.source.table.name),
        where(read, [found, *pieces], ends.now),
    )
    if not read.is_changed or piece:
        return now
    return sql.SQL("{} union all {}").format(now, inserted_query(read, ends, tables))


def inserted_query(read: Read, ends: Ends, tables: Mapping[str, pa.Table] | None) -> sql.Composed:
    """What the window inserted of the rows that a read finds, to be taken off again."""
    fields, found = _fields_and_lookups(read, tables)
    return sql.SQL(
        "select {fields}, -sum(t.{change})::bigint as {weight} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) > 0"
    ).format(
        fields=fields,
        weight=sql.Identifier(WEIGHT),
        change=CHANGE,
        window=window(read, ends),
        where=among([found]),
        positions=_positions(len(fields_of(read))),
    )


def _fields_and_lookups(
    read: Read, tables: Mapping[str, pa.Table] | None
) -> tuple[sql.Composable, sql.Composable]:
    found = any_of(read.lookups, tables) if read.lookups else ALWAYS
    if tables is None and read.earlier:
        found = NEVER  # the first read of this source has it all
    again = [any_of(read.earlier, tables)] if read.earlier else []
    marks = [sql.SQL(", coalesce({}, false) as {}").format(a, sql.Identifier(AGAIN)) for a in again]
    return sql.SQL("").join([carried(read), *marks]), found


def _positions(count: int) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(count))
