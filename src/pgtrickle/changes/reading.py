"""The reads of a program as SQL, and as Arrow tables under the snapshot of a refresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from pgtrickle.changes.answers import answer_query, is_empty_answer
from pgtrickle.changes.kept import Ask, can_be_kept, found_in
from pgtrickle.changes.keys import ALWAYS, NEVER, Keys, any_of, trusted
from pgtrickle.changes.memory import Holding, cost
from pgtrickle.changes.relations import CHANGE, Ends, among, carried, where, window
from pgtrickle.model.carrier import BOOLEAN, Carrier, Field
from pgtrickle.plan.reads import AGAIN, WEIGHT, Read, ReadKind, Version
from pgtrickle.postgres.arrow import arrow_schema, read_batches
from pgtrickle.postgres.connection import Connection, sql

Whole = Callable[[Read, Ask], pa.Table | None]
"""Gives all rows that a read of an unchanged source could find, if they are few enough to be kept."""

_AGAIN = Field(AGAIN, Carrier("boolean", BOOLEAN, "({})", "({})::boolean", True, False))


def read_all(
    reads: tuple[Read, ...],
    connection: Connection,
    ends: Ends,
    holding: Holding,
    *,
    given: Mapping[str, pa.Table] = MappingProxyType({}),
    whole: Whole | None = None,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
    onto: dict[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """Read one after the other, each restricted by the keys that the ones before it found.

    `given` are keys that no read finds; `shared` is what was read already, by the name of the read. If
    the rows are too many for the driver, what was read so far is in `onto`.
    """
    found = {} if onto is None else onto
    tables = {**given, **shared}
    for read in reads:
        if read.name not in shared:
            tables[read.name] = read_one(read, connection, ends, Keys(tables), holding, whole)
        found[read.name] = tables[read.name]
    return found


def fields_of(read: Read) -> tuple[Field, ...]:
    """The columns that a read gives, beside the weight."""
    return (*read.fields, _AGAIN) if read.earlier else read.fields


def has_weight(read: Read) -> bool:
    """Whether the rows of a read count more, or less, than once, or have nothing else to be seen by."""
    is_compared = read.version in {Version.CHANGED, Version.STAYED}
    return read.kind is not ReadKind.ANSWER or is_compared or not read.fields


def read_one(
    read: Read,
    connection: Connection,
    ends: Ends,
    keys: Keys | None,
    holding: Holding,
    whole: Whole | None = None,
) -> pa.Table:
    """The rows of one read, as far as the driver may hold them; without keys, all of them."""
    if keys is None:
        return _held(read, connection, read_query(read, ends, None), holding)
    if is_empty(read, keys):
        return arrow_schema(fields_of(read), has_weight=has_weight(read)).empty_table()
    if whole is not None and can_be_kept(read, keys.tables):
        rows = whole(read, partial(_first, connection, ends))
        if rows is not None:
            return found_in(rows, read, keys.tables)
    return _held(read, connection, read_query(read, ends, keys), holding)


def _first(connection: Connection, ends: Ends, read: Read, limit: int, most: int) -> pa.Table | None:
    """At most so many rows of a read; None if they have more bytes than `most`."""
    query = sql.SQL("{} limit {}").format(read_query(read, ends, Keys({})), sql.Literal(limit))
    schema = arrow_schema(fields_of(read), has_weight=has_weight(read))
    found: list[pa.RecordBatch] = []
    size = 0
    # to the end in any case: they are few, and to break off would end the transaction
    for batch in read_batches(connection, query, schema):
        size += cost(batch)
        found = [*found, batch] if size <= most else []
    return pa.Table.from_batches(found, schema) if size <= most else None


def _held(read: Read, connection: Connection, query: sql.Composable, holding: Holding) -> pa.Table:
    schema = arrow_schema(fields_of(read), has_weight=has_weight(read))
    return holding.table(read_batches(connection, query, schema), schema)


def is_empty(read: Read, keys: Keys) -> bool:
    """Whether the keys tell already that there is nothing to read."""
    if read.lookups and any_of(read.lookups, keys) is NEVER:
        return True
    return bool(read.parts) and is_empty_answer(read, keys)


def read_query(read: Read, ends: Ends, keys: Keys | None, piece: str | None = None) -> sql.Composed:
    """The SQL of a read; without keys its lookups are left out and it reads everything.

    `piece` is a condition that takes some of a source's rows, without what the window inserted.
    """
    if read.kind is ReadKind.CHANGES:
        return _changes(read, ends)
    if read.kind is ReadKind.ANSWER:
        return answer_query(read, ends, keys)
    return _rows(read, ends, keys, piece)


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


def _rows(read: Read, ends: Ends, keys: Keys | None, piece: str | None) -> sql.Composed:
    """Rows as they are now, less those that the window inserted."""
    assert read.source is not None
    fields, found = _fields_and_lookups(read, keys)
    pieces = [trusted(piece)] if piece else []
    now = sql.SQL("select {}, 1::bigint as {} from {} as t{}").format(
        fields,
        sql.Identifier(WEIGHT),
        sql.Identifier(read.source.table.schema, read.source.table.name),
        where(read, [found, *pieces], ends.now),
    )
    if not read.is_changed or piece:
        return now
    return sql.SQL("{} union all {}").format(now, inserted_query(read, ends, keys))


def inserted_query(read: Read, ends: Ends, keys: Keys | None) -> sql.Composed:
    """What the window inserted of the rows that a read finds, to be taken off again."""
    fields, found = _fields_and_lookups(read, keys)
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


def _fields_and_lookups(read: Read, keys: Keys | None) -> tuple[sql.Composable, sql.Composable]:
    found = any_of(read.lookups, keys) if read.lookups else ALWAYS
    if keys is None and read.earlier:
        found = NEVER  # the first read of this source has it all
    again = [any_of(read.earlier, keys)] if read.earlier else []
    marks = [sql.SQL(", coalesce({}, false) as {}").format(a, sql.Identifier(AGAIN)) for a in again]
    return sql.SQL("").join([carried(read), *marks]), found


def _positions(count: int) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(count))
