"""Carries out the reads of a program: their SQL, and their rows as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from pgtrickle.changes.answers import answer_query, is_empty_answer
from pgtrickle.changes.kept_rows import Ask, can_be_kept, matching_rows
from pgtrickle.changes.keys import ALWAYS, NEVER, LookupKeys, any_of, trusted_sql
from pgtrickle.changes.known_rows import known_rows
from pgtrickle.changes.memory import Holding, cost
from pgtrickle.changes.relations import (
    Ends,
    carried_list,
    change_of,
    stored_list,
    where,
    where_all,
    window_query,
)
from pgtrickle.model.carrier import BOOLEAN, Carrier, Field
from pgtrickle.plan.reads import AGAIN, WEIGHT, Read, ReadKind, Version
from pgtrickle.postgres.arrow import arrow_schema, read_batches
from pgtrickle.postgres.connection import Connection, set_locally, sql

Whole = Callable[[Read, Ask], pa.Table | None]
"""Returns all rows that a read of an unchanged source could find, if they are few enough to keep."""

SelectList = Callable[[Read], sql.Composed]
"""Writes the select list of a read."""

_LOOPS = "enable_material"
"""A nested loop without an index is cheap only if its inner side is kept."""

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
    """Carry out the reads in order, each restricted by the keys that earlier ones found.

    `given` holds keys that no read finds; `shared` holds rows that were read before, by the name of the read.
    If the rows are too many for the driver, `onto` holds what was read so far.
    """
    found = {} if onto is None else onto
    tables = {**given, **shared}
    asked = _Asked()
    with _joining_parts(connection, reads):
        for read in reads:
            if read.name not in shared:
                keys = LookupKeys(tables)
                tables[read.name] = read_one(read, connection, ends, keys, holding, whole, asked)
            asked.reads.append(read)
            found[read.name] = tables[read.name]
    return found


@contextmanager
def _joining_parts(connection: Connection, reads: Sequence[Read]) -> Iterator[None]:
    """Plan answers over several parts without loops that compare each row with each.

    The planner cannot know how many rows a part has, and such a loop over some thousand rows, which it takes
    for two, costs more than everything else. Loops over an index stay possible.
    """
    if not any(len(read.parts) > 1 for read in reads):
        yield
        return
    set_locally(connection, {_LOOPS: "off"})
    yield
    set_locally(connection, {_LOOPS: "on"})


@dataclass(slots=True)
class _Asked:
    """What was asked in one snapshot: the reads, and the rows of each query, by its text and types.

    A query that names a table several times often reads the same rows of it for each of them.
    """

    reads: list[Read] = field(default_factory=list)
    answers: dict[tuple[str, tuple[pa.DataType, ...]], pa.Table] = field(default_factory=dict)


def fields_of(read: Read) -> tuple[Field, ...]:
    """The columns of a read, without the weight."""
    return (*read.fields, _AGAIN) if read.earlier else read.fields


def has_weight(read: Read) -> bool:
    """Whether a read has a column for the weight: it does unless every row counts once and has columns."""
    is_compared = read.version in {Version.CHANGED, Version.STAYED}
    return read.kind is not ReadKind.ANSWER or is_compared or not read.fields


def read_one(
    read: Read,
    connection: Connection,
    ends: Ends,
    keys: LookupKeys | None,
    holding: Holding,
    whole: Whole | None = None,
    asked: _Asked | None = None,
) -> pa.Table:
    """Read the rows of one read into the driver; without keys, all of them."""
    if keys is None:
        return _read_held(read, connection, read_query(read, ends, None), holding)
    if is_empty(read, keys):
        return arrow_schema(fields_of(read), has_weight=has_weight(read)).empty_table()
    if whole is not None and can_be_kept(read, keys.tables):
        rows = whole(read, partial(_read_first, connection, ends))
        if rows is not None:
            return matching_rows(rows, read, keys.tables)
    known = known_rows(read, asked.reads, keys) if asked is not None else None
    if known is None:
        return _read_once(read, connection, ends, keys, holding, asked)
    holding.add(known.rows)
    if known.others is None:
        return known.rows
    return known.with_others(_read_once(known.others, connection, ends, known.keys, holding, asked))


def _read_once(
    read: Read, connection: Connection, ends: Ends, keys: LookupKeys, holding: Holding, asked: _Asked | None
) -> pa.Table:
    """Ask PostgreSQL, unless the same was asked before in this snapshot."""
    if asked is None or read.kind is ReadKind.ANSWER:
        return _read_held(read, connection, read_query(read, ends, keys), holding)
    text = read_query(_unnamed(read), ends, keys).as_string(connection)
    schema = arrow_schema(fields_of(read), has_weight=has_weight(read))
    answer = text, tuple(schema.types)
    if answer not in asked.answers:
        asked.answers[answer] = _read_held(read, connection, trusted_sql(text), holding)
    return asked.answers[answer].rename_columns(schema.names)


def _unnamed(read: Read) -> Read:
    """The read with numbers for names, so that equal queries have the same text; COPY does not send names."""
    return replace(read, fields=tuple(replace(f, name=f"f{n}") for n, f in enumerate(read.fields)))


def _read_first(connection: Connection, ends: Ends, read: Read, limit: int, most: int) -> pa.Table | None:
    """Read at most `limit` rows; None if they have more than `most` bytes."""
    query = sql.SQL("{} limit {}").format(read_query(read, ends, LookupKeys({})), sql.Literal(limit))
    schema = arrow_schema(fields_of(read), has_weight=has_weight(read))
    found: list[pa.RecordBatch] = []
    size = 0
    # read to the end in any case: they are few, and breaking off would end the transaction
    for batch in read_batches(connection, query, schema):
        size += cost(batch)
        found = [*found, batch] if size <= most else []
    return pa.Table.from_batches(found, schema) if size <= most else None


def _read_held(read: Read, connection: Connection, query: sql.Composable, holding: Holding) -> pa.Table:
    schema = arrow_schema(fields_of(read), has_weight=has_weight(read))
    return holding.table(read_batches(connection, query, schema), schema)


def is_empty(read: Read, keys: LookupKeys) -> bool:
    """Whether the keys alone show that there is nothing to read."""
    if read.lookups and any_of(read.lookups, keys) is NEVER:
        return True
    return bool(read.parts) and is_empty_answer(read, keys)


def read_query(read: Read, ends: Ends, keys: LookupKeys | None, piece: str | None = None) -> sql.Composed:
    """The SQL of a read; without keys it ignores its lookups and reads everything.

    `piece` is a condition that selects a part of the rows; the rows that the window inserted are then not
    subtracted.
    """
    if read.kind is ReadKind.CHANGES:
        return _changes_query(read, ends)
    if read.kind is ReadKind.ANSWER:
        return answer_query(read, ends, keys)
    return _rows_query(read, ends, keys, piece)


def stored_query(read: Read, ends: Ends, keys: LookupKeys | None, piece: str) -> sql.Composed:
    """The same for a part of the rows, with values whose binary form is the carried one."""
    return _rows_query(read, ends, keys, piece, stored_list)


def _changes_query(read: Read, ends: Ends) -> sql.Composed:
    assert read.source is not None
    change = change_of(read.source)
    return sql.SQL(
        "select {fields}, sum(t.{change})::bigint as {weight} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) <> 0"
    ).format(
        fields=carried_list(read),
        weight=sql.Identifier(WEIGHT),
        change=change,
        window=window_query(read, ends),
        where=where_all([sql.SQL("t.{} <> 0").format(change)]),
        positions=_positions(len(read.fields)),
    )


def native_changes_query(read: Read, ends: Ends, fields: Mapping[str, Field]) -> sql.Composed:
    """The change rows of a read one by one, each of these fields of the read in its PostgreSQL type.

    They have the names that are given here, and the weight.
    """
    assert read.source is not None
    change = change_of(read.source)
    expressions = {field.name: text for field, text in zip(read.fields, read.expressions, strict=True)}
    values = [
        sql.SQL("{} as {}").format(
            _native_value(expressions[field.name], field.carrier), sql.Identifier(name)
        )
        for name, field in fields.items()
    ]
    return sql.SQL("select {}, t.{}::bigint as {} from ({}) as t where t.{} <> 0").format(
        sql.SQL(", ").join(values), change, sql.Identifier(WEIGHT), window_query(read, ends), change
    )


def _native_value(expression: str, carrier: Carrier) -> sql.SQL:
    collation = f" collate {carrier.collation}" if carrier.collation else ""
    return trusted_sql(f"(({expression})::{carrier.pg_type}{collation})")


def _rows_query(
    read: Read, ends: Ends, keys: LookupKeys | None, piece: str | None, listed: SelectList = carried_list
) -> sql.Composed:
    """The rows now, minus those that the window inserted."""
    assert read.source is not None
    fields, found = _fields_and_lookups(read, keys, listed)
    pieces = [trusted_sql(piece)] if piece else []
    now = sql.SQL("select {}, 1::bigint as {} from {} as t{}").format(
        fields,
        sql.Identifier(WEIGHT),
        sql.Identifier(read.source.table.schema, read.source.table.name),
        where(read, [found, *pieces], ends.now),
    )
    if not read.is_changed or piece:
        return now
    return sql.SQL("{} union all {}").format(now, inserted_query(read, ends, keys))


def inserted_query(read: Read, ends: Ends, keys: LookupKeys | None) -> sql.Composed:
    """The rows of a read that the window inserted, with negative weights."""
    assert read.source is not None
    fields, found = _fields_and_lookups(read, keys)
    return sql.SQL(
        "select {fields}, -sum(t.{change})::bigint as {weight} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) > 0"
    ).format(
        fields=fields,
        weight=sql.Identifier(WEIGHT),
        change=change_of(read.source),
        window=window_query(read, ends),
        where=where_all([found]),
        positions=_positions(len(fields_of(read))),
    )


def _fields_and_lookups(
    read: Read, keys: LookupKeys | None, listed: SelectList = carried_list
) -> tuple[sql.Composable, sql.Composable]:
    found = any_of(read.lookups, keys) if read.lookups else ALWAYS
    if keys is None and read.earlier:
        found = NEVER  # the first read of this source finds all rows
    again = [any_of(read.earlier, keys)] if read.earlier else []
    marks = [sql.SQL(", coalesce({}, false) as {}").format(a, sql.Identifier(AGAIN)) for a in again]
    return sql.SQL("").join([listed(read), *marks]), found


def _positions(count: int) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(count))
