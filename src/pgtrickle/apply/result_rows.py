"""The rows that Spark returned, as a relation that a statement can read.

Few rows are array parameters of the statement. More rows are copied into a temporary table, and Spark's tasks
copy many rows into an unlogged staging table. Rows that PostgreSQL computes itself are a query. All have the
same columns: the carried fields and the weight or count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa

from pgtrickle.apply.compose import comma_list, identifier, relation, trusted_sql
from pgtrickle.model.carrier import BIGINT, Field, SparkType
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import FirstRows, MergedGroups, ReplacedGroups, RowsTarget, Target
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.array_literals import array_literal
from pgtrickle.postgres.arrow import arrow_type
from pgtrickle.postgres.connection import sql


@dataclass(frozen=True, slots=True)
class ArrayRows:
    """Few rows in memory."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Many rows that the tasks of one run wrote; `attempts` are the pairs (part, attempt) that succeeded."""

    table: RelationName
    run: int
    attempts: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows in a temporary table of the transaction."""

    table: RelationName


@dataclass(frozen=True, slots=True)
class QueriedRows:
    """Rows that PostgreSQL computes while it writes them, by a query without parameters."""

    query: str


@dataclass(frozen=True, slots=True)
class NativeRows:
    """The same for rows whose values were never carried: they already have their PostgreSQL types."""

    query: str


Rows = ArrayRows | CopiedRows | StagedRows | QueriedRows | NativeRows


@dataclass(frozen=True, slots=True)
class CarriedColumn:
    """A column in the form in which Spark returns it."""

    name: str
    form: SparkType
    input_type: str | None = None

    @property
    def sql_type(self) -> str:
        """Its PostgreSQL type before it is converted."""
        return self.form.postgres if self.input_type is None else self.input_type

    @property
    def arrow_type(self) -> pa.DataType:
        """Its type in an Arrow table."""
        return arrow_type(self.form)


@dataclass(frozen=True, slots=True)
class Relation:
    """A query and its named parameters."""

    query: sql.Composed
    parameters: Mapping[str, object]


def carried_columns(target: Target) -> tuple[CarriedColumn, ...]:
    """The columns that Spark returns for a target, in order; its staging table has them too."""
    match target:
        case RowsTarget() | FirstRows():
            return (*carried_fields(target.fields), CarriedColumn(WEIGHT, BIGINT))
        case ReplacedGroups():
            return (*carried_fields((*target.keys, *target.values)), CarriedColumn(WEIGHT, BIGINT))
        case MergedGroups():
            slots = [field for s in target.slots for field in (s.change, s.removed) if field]
            return (*carried_fields(target.keys), CarriedColumn(target.count, BIGINT), *carried_fields(slots))
        case _:
            assert_never(target)


def carried_fields(fields: Iterable[Field]) -> tuple[CarriedColumn, ...]:
    """The carried columns of fields; several slots may share one."""
    return tuple(
        dict.fromkeys(
            CarriedColumn(field.name, field.carrier.form, field.carrier.input_type) for field in fields
        )
    )


def relation_of(rows: Rows, columns: tuple[CarriedColumn, ...], prefix: str = "rows") -> Relation:
    """A query for these columns; `prefix` makes its parameters distinct from those of another query."""
    match rows:
        case ArrayRows(table):
            return _array_relation(table, columns, prefix)
        case CopiedRows(name):
            names = comma_list(identifier(column.name) for column in columns)
            return Relation(sql.SQL("select {} from {}").format(names, relation(name)), {})
        case StagedRows():
            return _staged_relation(rows, columns, prefix)
        case QueriedRows(query):
            return _queried_relation(query, columns)
        case NativeRows(query):
            names = comma_list(identifier(column.name) for column in columns)
            return Relation(sql.SQL("select {} from ({}) as q").format(names, trusted_sql(query)), {})
        case _:
            assert_never(rows)


def _array_relation(table: pa.Table, columns: tuple[CarriedColumn, ...], prefix: str) -> Relation:
    parameters = array_parameters(table, columns, prefix)
    arrays = [
        sql.SQL("{}::{}[]").format(sql.Placeholder(name), trusted_sql(column.sql_type))
        for name, column in zip(parameters, columns, strict=True)
    ]
    query = sql.SQL("select * from unnest({}) as r({})").format(
        comma_list(arrays), comma_list(identifier(column.name) for column in columns)
    )
    return Relation(query, parameters)


def array_parameters(
    table: pa.Table, columns: tuple[CarriedColumn, ...], prefix: str = "rows"
) -> dict[str, object]:
    """The parameters of the query for few rows, which itself does not depend on the rows."""
    return {f"{prefix}_{n}": array_literal(table.column(column.name)) for n, column in enumerate(columns)}


def no_rows(columns: tuple[CarriedColumn, ...]) -> ArrayRows:
    """No rows with these columns, to compose the query for few rows."""
    return ArrayRows(pa.table({column.name: pa.array([], column.arrow_type) for column in columns}))


def can_be_queried(columns: Iterable[CarriedColumn]) -> bool:
    """Whether a cast is enough to get values from their carried form into the columns of a relation.

    A text that the input function of another type reads would have to pass through a COPY: roles can define
    casts from text to their own types.
    """
    return all(column.input_type in (None, "numeric") for column in columns)


def _queried_relation(query: str, columns: tuple[CarriedColumn, ...]) -> Relation:
    values = comma_list(
        sql.SQL("q.{0}::{1} as {0}").format(identifier(column.name), trusted_sql(column.sql_type))
        for column in columns
    )
    return Relation(sql.SQL("select {} from ({}) as q").format(values, trusted_sql(query)), {})


def _staged_relation(rows: StagedRows, columns: tuple[CarriedColumn, ...], prefix: str) -> Relation:
    run, parts, attempts = (f"{prefix}_{name}" for name in ("run", "parts", "attempts"))
    query = sql.SQL(
        "select {columns} from {table} where run = {run}"
        " and (part, attempt) in (select * from unnest({parts}::integer[], {attempts}::bigint[]))"
    ).format(
        columns=comma_list(identifier(column.name) for column in columns),
        table=relation(rows.table),
        run=sql.Placeholder(run),
        parts=sql.Placeholder(parts),
        attempts=sql.Placeholder(attempts),
    )
    values = {
        run: rows.run,
        parts: [part for part, _ in rows.attempts],
        attempts: [attempt for _, attempt in rows.attempts],
    }
    return Relation(query, values)
