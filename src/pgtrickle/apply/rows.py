"""The rows that Spark returned, as a relation that a statement can read.

Few rows come as array parameters of the statement itself. More of them are copied into a temporary table;
many were copied by Spark's tasks into an unlogged staging table. All give the same columns: the carried
fields and the weight or count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa

from pgtrickle.apply.composing import identifier, listed, relation, trusted
from pgtrickle.model.carrier import BIGINT, Field, SparkType
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import FirstRows, MergedGroups, ReplacedGroups, RowsTarget, Target
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.arrow import arrow_type
from pgtrickle.postgres.connection import sql


@dataclass(frozen=True, slots=True)
class ArrayRows:
    """Few rows, in memory."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Many rows, written by the tasks of one run; `attempts` are the (part, attempt) that succeeded."""

    table: RelationName
    run: int
    attempts: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows in a temporary table of the transaction."""

    table: RelationName


Rows = ArrayRows | CopiedRows | StagedRows


@dataclass(frozen=True, slots=True)
class CarriedColumn:
    """A column as it comes from Spark."""

    name: str
    form: SparkType
    input_type: str | None = None

    @property
    def sql_type(self) -> str:
        """The type it has on its way into PostgreSQL."""
        return self.form.postgres if self.input_type is None else self.input_type

    @property
    def arrow_type(self) -> pa.DataType:
        """The type it has in an Arrow table."""
        return arrow_type(self.form)


@dataclass(frozen=True, slots=True)
class Relation:
    """A query and the parameters that it names."""

    query: sql.Composed
    parameters: Mapping[str, object]


def carried_columns(target: Target) -> tuple[CarriedColumn, ...]:
    """What Spark returns for a target, in order; also the columns of its staging table."""
    match target:
        case RowsTarget() | FirstRows():
            return (*of_fields(target.fields), CarriedColumn(WEIGHT, BIGINT))
        case ReplacedGroups():
            return (*of_fields((*target.keys, *target.values)), CarriedColumn(WEIGHT, BIGINT))
        case MergedGroups():
            slots = [field for s in target.slots for field in (s.change, s.removed) if field]
            return (*of_fields(target.keys), CarriedColumn(target.count, BIGINT), *of_fields(slots))
        case _:
            assert_never(target)


def of_fields(fields: Iterable[Field]) -> tuple[CarriedColumn, ...]:
    """The carried columns of some fields; slots may share one."""
    return tuple(
        dict.fromkeys(
            CarriedColumn(field.name, field.carrier.form, field.carrier.input_type) for field in fields
        )
    )


def relation_of(rows: Rows, columns: tuple[CarriedColumn, ...], prefix: str = "rows") -> Relation:
    """A query that gives these columns; `prefix` keeps its parameters apart from another one's."""
    match rows:
        case ArrayRows(table):
            return _unnested(table, columns, prefix)
        case CopiedRows(name):
            names = listed(identifier(column.name) for column in columns)
            return Relation(sql.SQL("select {} from {}").format(names, relation(name)), {})
        case StagedRows():
            return _staged(rows, columns, prefix)
        case _:
            assert_never(rows)


def _unnested(table: pa.Table, columns: tuple[CarriedColumn, ...], prefix: str) -> Relation:
    names = [f"{prefix}_{number}" for number in range(len(columns))]
    arrays = [
        sql.SQL("{}::{}[]").format(sql.Placeholder(name), trusted(column.sql_type))
        for name, column in zip(names, columns, strict=True)
    ]
    query = sql.SQL("select * from unnest({}) as r({})").format(
        listed(arrays), listed(identifier(column.name) for column in columns)
    )
    values = [table.column(column.name).to_pylist() for column in columns]
    return Relation(query, dict(zip(names, values, strict=True)))


def _staged(rows: StagedRows, columns: tuple[CarriedColumn, ...], prefix: str) -> Relation:
    run, parts, attempts = (f"{prefix}_{name}" for name in ("run", "parts", "attempts"))
    query = sql.SQL(
        "select {columns} from {table} where run = {run}"
        " and (part, attempt) in (select * from unnest({parts}::integer[], {attempts}::bigint[]))"
    ).format(
        columns=listed(identifier(column.name) for column in columns),
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
