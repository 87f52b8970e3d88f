"""Keys found in one read, as conditions for the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute

from pgtrickle.model.carrier import Field
from pgtrickle.plan.reads import Lookup
from pgtrickle.postgres.connection import sql

MANY = 100_000
"""With more keys than this a lookup asks more of PostgreSQL than a scan does."""

_NATIVE = {
    "boolean": "boolean",
    "smallint": "bigint",
    "int": "bigint",
    "bigint": "bigint",
    "float": "double precision",
    "double": "double precision",
}


def trusted(text: str) -> sql.SQL:
    """SQL that our compiler wrote, from quoted names."""
    return sql.SQL(cast(Any, text))


ALWAYS = sql.SQL("true")
NEVER = sql.SQL("false")


def any_of(lookups: tuple[Lookup, ...], tables: Mapping[str, pa.Table] | None) -> sql.Composable:
    """The condition that one of the lookups finds a row of the alias `t`; without tables all do."""
    if tables is None:
        return ALWAYS
    found = [_condition(lookup, tables) for lookup in lookups if has_keys(lookup, tables)]
    if ALWAYS in found:
        return ALWAYS
    return sql.SQL("({})").format(sql.SQL(" or ").join(found)) if found else NEVER


def _condition(lookup: Lookup, tables: Mapping[str, pa.Table]) -> sql.Composable:
    """The lookup as a condition; always true where there are too many keys for one.

    Several columns are restricted one by one: a superset of the pairs, which is enough, and a
    condition that PostgreSQL can push into a subquery and answer from an index.
    """
    parts = []
    for position, key in enumerate(lookup.keys):
        values = _values(lookup, position, tables)
        if len(values) > MANY:
            continue
        parts.append(_among(trusted(lookup.columns[position]), key, values, lookup.is_null_safe))
    if not parts:
        return ALWAYS
    return parts[0] if len(parts) == 1 else sql.SQL("({})").format(sql.SQL(" and ").join(parts))


def has_keys(lookup: Lookup, tables: Mapping[str, pa.Table]) -> bool:
    """Whether the providers have any row at all."""
    return any(tables[provider.read].num_rows for provider in lookup.providers)


def _values(lookup: Lookup, position: int, tables: Mapping[str, pa.Table]) -> list[Any]:
    chunks = [tables[provider.read].column(provider.fields[position]) for provider in lookup.providers]
    distinct: dict[Any, None] = {}
    for chunk in chunks:
        distinct.update(dict.fromkeys(pyarrow.compute.unique(chunk).to_pylist()))
    return list(distinct)


def _among(column: sql.Composable, key: Field, values: list[Any], is_null_safe: bool) -> sql.Composable:
    column = sql.SQL("({})").format(column)
    present = [value for value in values if value is not None]
    found = sql.SQL("{} = any({})").format(column, _array(key, present))
    if key.carrier.pg_type.endswith("[]"):
        found = _one_of(column, key.carrier.pg_type, present)
    if is_null_safe and len(present) < len(values):
        return sql.SQL("({} or {} is null)").format(found, column)
    return found


def _one_of(column: sql.Composable, pg_type: str, values: list[Any]) -> sql.Composed:
    """The condition for keys that are arrays themselves: PostgreSQL has no array of arrays."""
    keys = [sql.SQL("{}::{}").format(sql.Literal(value), trusted(pg_type)) for value in values]
    never = sql.SQL("null::{}").format(trusted(pg_type))
    return sql.SQL("{} in ({})").format(column, sql.SQL(", ").join(keys or [never]))


def _array(key: Field, values: list[Any]) -> sql.Composable:
    """The keys as an array of the column's own type, as a constant wherever that is possible."""
    carrier = key.carrier
    if carrier.carry == "({})":
        return sql.SQL("{}::{}[]").format(sql.Literal(values), trusted(_NATIVE[carrier.spark]))
    if carrier.spark.startswith("decimal") or carrier.carry.startswith("trim_scale"):
        return sql.SQL("{}::numeric[]").format(sql.Literal([str(value) for value in values]))
    if carrier.carry == "({})::text":
        is_text = carrier.pg_type.startswith(("text", "character varying"))
        return sql.SQL("{}::{}[]").format(
            sql.Literal(values), trusted("text" if is_text else carrier.pg_type)
        )
    carried = {"int": "integer", "bigint": "bigint", "string": "text"}[carrier.spark]
    return sql.SQL("array(select {} from unnest({}::{}[]) as k(key))").format(
        trusted(carrier.restored("k.key")), sql.Literal(values), trusted(carried)
    )
