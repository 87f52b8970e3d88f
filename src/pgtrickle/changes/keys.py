"""Turns keys from one read into conditions for the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute

from pgtrickle.model.carrier import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    DecimalType,
    Field,
    SparkType,
)
from pgtrickle.plan.carriers import TEXT
from pgtrickle.plan.reads import Lookup
from pgtrickle.postgres.connection import sql

MANY = 100_000
"""With more keys than this a lookup costs PostgreSQL more than a scan."""
MANY_BYTES = 4 << 20
"""The keys are part of the statement, so they must not be long either."""

_NATIVE: Mapping[SparkType, str] = {
    BOOLEAN: "boolean",
    SMALLINT: "bigint",
    INT: "bigint",
    BIGINT: "bigint",
    FLOAT: "double precision",
    DOUBLE: "double precision",
}


_INTEGERS: frozenset[SparkType] = frozenset({SMALLINT, INT, BIGINT})


def trusted_sql(text: str) -> sql.SQL:
    """SQL that our compiler wrote from quoted names."""
    return sql.SQL(cast(Any, text))


ALWAYS = sql.SQL("true")
NEVER = sql.SQL("false")


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """The query of a read that was not carried out: PostgreSQL finds its keys by it, in the same snapshot.

    `size` counts the reads in it, because the query of a read contains those of the reads that give it keys.
    """

    query: sql.Composable
    size: int


@dataclass(frozen=True, slots=True)
class LookupKeys:
    """Where the keys of lookups come from: `tables` in memory, or `queries`.

    A lookup without keys finds every row: a read may always find more rows than necessary. A lookup must find
    the same rows for every read, because a later read leaves out what an earlier one found. So PostgreSQL is
    never asked for the keys of `marked` lookups: it would be too expensive to mark rows that way.
    """

    tables: Mapping[str, pa.Table]
    queries: Mapping[str, KeyQuery] = field(default_factory=dict)
    marked: frozenset[Lookup] = frozenset()

    def are_held(self, lookup: Lookup) -> bool:
        """Whether all keys of a lookup are in memory."""
        return all(provider.read in self.tables for provider in lookup.providers)

    def are_asked(self, lookup: Lookup) -> bool:
        """Whether a query can find the keys that are not in memory."""
        is_plain = not lookup.is_null_safe and lookup.comparison is None and lookup not in self.marked
        return is_plain and all(p.read in self.tables or p.read in self.queries for p in lookup.providers)


def any_of(lookups: tuple[Lookup, ...], keys: LookupKeys | None) -> sql.Composable:
    """The condition that one of the lookups finds a row of the alias `t`; always true without keys."""
    if keys is None:
        return ALWAYS
    used = [lookup for lookup in lookups if has_keys(lookup, keys)]
    if not all(map(keys.are_held, used)):
        # PostgreSQL plans only a single IN as a join; inside an OR, every row would search a list
        return _asked_condition(used[0], keys) if len(used) == 1 and keys.are_asked(used[0]) else ALWAYS
    conditions = [_condition(lookup, keys.tables) for lookup in used]
    found = [condition for condition in conditions if condition is not NEVER]
    if ALWAYS in found:
        return ALWAYS
    return sql.SQL("({})").format(sql.SQL(" or ").join(found)) if found else NEVER


def key_rows(lookups: tuple[Lookup, ...], keys: LookupKeys | None) -> sql.Composable | None:
    """The keys of the only lookup as rows; None if they are not in memory, are too many, or some are null."""
    if keys is None or len(lookups) != 1 or len(lookups[0].providers) != 1:
        return None
    (lookup,), (provider,) = lookups, lookups[0].providers
    if provider.read not in keys.tables or are_many(lookup, keys.tables):
        return None
    columns = [keys.tables[provider.read].column(name) for name in provider.fields]
    if any(column.null_count for column in columns) or any(
        k.carrier.pg_type.endswith("[]") for k in lookup.keys
    ):
        return None
    arrays = [_array(key, column.to_pylist()) for key, column in zip(lookup.keys, columns, strict=True)]
    return sql.SQL("unnest({})").format(sql.SQL(", ").join(arrays))


def has_keys(lookup: Lookup, keys: LookupKeys) -> bool:
    """Whether the providers may have any rows."""
    held = [keys.tables[p.read] for p in lookup.providers if p.read in keys.tables]
    return len(held) < len(lookup.providers) or any(table.num_rows for table in held)


def are_many(lookup: Lookup, tables: Mapping[str, pa.Table]) -> bool:
    """Whether a lookup may have too many keys for a condition."""
    columns = [tables[p.read].column(name) for p in lookup.providers for name in p.fields]
    return sum(len(c) for c in columns) > MANY or sum(c.nbytes for c in columns) > MANY_BYTES


def _asked_condition(lookup: Lookup, keys: LookupKeys) -> sql.Composable:
    """The lookup as a condition whose keys PostgreSQL finds.

    Each column has a condition of its own, so that PostgreSQL can join for any number of keys.
    """
    parts = [
        sql.SQL("({}) {} any ({})").format(
            trusted_sql(lookup.columns[position]),
            trusted_sql(key.carrier.equals),
            sql.SQL(" union all ").join(found),
        )
        for position, key in enumerate(lookup.keys)
        if (found := _key_queries(lookup, position, keys))
    ]
    return sql.SQL(" and ").join(parts) if parts else ALWAYS


def _key_queries(lookup: Lookup, position: int, keys: LookupKeys) -> list[sql.Composable]:
    """For each provider the query of its keys; none if the keys in memory are too many for a statement."""
    key = lookup.keys[position]
    if key.carrier.pg_type.endswith("[]"):
        return []
    asked = [p for p in lookup.providers if p.read in keys.queries]
    held = replace(lookup, providers=tuple(p for p in lookup.providers if p.read in keys.tables))
    values = _values(held, position, keys.tables)
    if values is None:
        return []
    value = trusted_sql(key.carrier.restore_sql("k.key"))
    found: list[sql.Composable] = [
        sql.SQL("select {} from (select k.{} as key from ({}) as k) as k").format(
            value, sql.Identifier(provider.fields[position]), keys.queries[provider.read].query
        )
        for provider in asked
    ]
    if values:
        found.append(sql.SQL("select unnest({})").format(_array(key, [v for v in values if v is not None])))
    return found


def _condition(lookup: Lookup, tables: Mapping[str, pa.Table]) -> sql.Composable:
    """The lookup as a condition; always true if there are too many keys.

    Each column is restricted by itself. That finds a superset of the rows, which is enough, by a condition
    that PostgreSQL can push into a subquery and answer from an index.
    """
    if lookup.comparison is not None:
        return _between(lookup, lookup.comparison, tables)
    parts = []
    for position, key in enumerate(lookup.keys):
        values = _values(lookup, position, tables)
        if values is None:
            continue
        parts.append(_among(trusted_sql(lookup.columns[position]), key, values, lookup.is_null_safe))
    if not parts:
        return ALWAYS
    return parts[0] if len(parts) == 1 else sql.SQL("({})").format(sql.SQL(" and ").join(parts))


def _between(lookup: Lookup, comparison: str, tables: Mapping[str, pa.Table]) -> sql.Composable:
    """The values between the bounds; if one of them is null, those that compare so with the others."""
    (key,), (column,) = lookup.keys, lookup.columns
    values = _values(lookup, 0, tables)
    if values is None:
        return ALWAYS
    bounds = [value for value in values if value is not None]
    if not bounds:
        return NEVER
    array = _array(key, bounds)
    listed = sql.SQL(", ").join(
        sql.SQL("({})[{}]").format(array, sql.Literal(number)) for number in range(1, len(bounds) + 1)
    )
    least, greatest = (sql.SQL("{}({})").format(sql.SQL(f), listed) for f in ("least", "greatest"))
    place = trusted_sql(column)
    if len(bounds) < len(values):
        bound = least if comparison.startswith(">") else greatest
        return sql.SQL("({}) {} {}").format(place, trusted_sql(comparison), bound)
    return sql.SQL("({0}) >= {1} and ({0}) <= {2}").format(place, least, greatest)


def _values(lookup: Lookup, position: int, tables: Mapping[str, pa.Table]) -> list[Any] | None:
    """The distinct keys; None if they are too many or too long for a condition."""
    distinct: dict[Any, None] = {}
    size = 0
    for provider in lookup.providers:
        found = pyarrow.compute.unique(tables[provider.read].column(provider.fields[position]))
        size += found.nbytes
        if len(found) > MANY or size > MANY_BYTES:
            return None
        distinct.update(dict.fromkeys(found.to_pylist()))
    return list(distinct) if len(distinct) <= MANY else None


def _among(column: sql.Composable, key: Field, values: list[Any], is_null_safe: bool) -> sql.Composable:
    column = sql.SQL("({})").format(column)
    if key.carrier.input_type is not None:
        # operators of enums and ranges do not take domains; an index can still be used
        column = sql.SQL("({}::{})").format(column, trusted_sql(key.carrier.input_type))
    present = [value for value in values if value is not None]
    found = sql.SQL("{} {} any({})").format(column, trusted_sql(key.carrier.equals), _array(key, present))
    if key.carrier.pg_type.endswith("[]"):
        found = _one_of(column, key.carrier.pg_type, present)
    if is_null_safe and len(present) < len(values):
        return sql.SQL("({} or {} is null)").format(found, column)
    return found


def _one_of(column: sql.Composable, pg_type: str, values: list[Any]) -> sql.Composed:
    """The condition for keys that are arrays: PostgreSQL has no arrays of arrays."""
    keys = [sql.SQL("{}::{}").format(sql.Literal(value), trusted_sql(pg_type)) for value in values]
    never = sql.SQL("null::{}").format(trusted_sql(pg_type))
    return sql.SQL("{} in ({})").format(column, sql.SQL(", ").join(keys or [never]))


def _array(key: Field, values: list[Any]) -> sql.Composable:
    """The keys as an array of the type of the column, as a constant if possible."""
    carrier = key.carrier
    if carrier.carry == "({})" and carrier.form in _INTEGERS:
        # thousands of keys occur several times in a statement, and psycopg writes each of them by itself
        return trusted_sql(f"'{{{','.join(map(str, values))}}}'::bigint[]")
    if carrier.carry == "({})":
        return sql.SQL("{}::{}[]").format(sql.Literal(values), trusted_sql(_NATIVE[carrier.form]))
    if isinstance(carrier.form, DecimalType):
        return sql.SQL("{}::numeric[]").format(sql.Literal([str(value) for value in values]))
    if carrier.carry == TEXT:
        is_text = carrier.pg_type.startswith(("text", "character varying"))
        return sql.SQL("{}::{}[]").format(
            sql.Literal(values), trusted_sql("text" if is_text else carrier.pg_type)
        )
    if carrier.input_type is not None:
        return sql.SQL("{}::{}[]").format(sql.Literal(values), trusted_sql(carrier.input_type))
    return sql.SQL("array(select {} from unnest({}::{}[]) as k(key))").format(
        trusted_sql(carrier.restore_sql("k.key")), sql.Literal(values), trusted_sql(carrier.form.postgres)
    )
