"""What the analysis of a query may ask: sources, views, function names and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.errors import CommandRefused, UnsupportedQuery
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.plan.lowering.internal_names import is_internal
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.plan.refusals import refuse

MAX_NAME_BYTES = 60
"""PostgreSQL cuts identifiers at 63 bytes; plan names stay below."""

_NO_COLUMN = "42P16"
"""The SQLSTATE for a type that no column can have, such as `record`."""

SET_FUNCTIONS = frozenset(
    {
        "unnest", "generate_series", "generate_subscripts", "string_to_table", "regexp_matches",
        "regexp_split_to_table", "json_array_elements", "jsonb_array_elements", "json_array_elements_text",
        "jsonb_array_elements_text", "json_object_keys", "jsonb_object_keys", "json_each", "jsonb_each",
        "json_each_text", "jsonb_each_text", "json_populate_recordset", "jsonb_populate_recordset",
        "json_to_recordset", "jsonb_to_recordset", "jsonb_path_query", "jsonb_path_query_tz", "ts_parse",
        "ts_token_type", "ts_stat", "ts_debug", "_pg_expandarray", "aclexplode", "pg_options_to_table",
        "xpath_table", "each", "skeys", "svals",
    }
)  # fmt: skip
"""PostgreSQL's own functions that return sets."""


class Typer(Protocol):
    """Tells the types of expressions; PostgreSQL does."""

    def __call__(self, from_sql: str, expressions: Sequence[str]) -> list[PgType]: ...


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """A query as PostgreSQL wrote it down, with all it reads.

    `aggregates` and `set_functions` are names of functions in lower case. Outside of pg_catalog, their schema
    and a point come first. `stream_table` is the id under which inner results are kept, if they are.
    """

    query: str
    sources: Mapping[RelationName, Source]
    views: Mapping[RelationName, str]
    aggregates: frozenset[str]
    outputs: tuple[tuple[str, PgType], ...]
    set_functions: frozenset[str] = SET_FUNCTIONS
    auxiliary: AuxiliaryUse = AuxiliaryUse.NEVER
    stream_table: int = 0


@dataclass(slots=True)
class Context:
    """One analysis: the definition, the typer, the limits, and the names given so far.

    `whole_rows` are the relations whose whole row is referred to, by name.
    """

    definition: QueryDefinition
    typer: Typer
    limits: QueryLimits = USUAL_LIMITS
    taken: set[str] = field(default_factory=lambda: {WEIGHT})
    relations: int = 0
    subqueries: int = 0
    types: dict[tuple[str, str], PgType] = field(default_factory=dict)
    whole_rows: set[str] = field(default_factory=set)
    written: dict[int, tuple[Operator, str]] = field(default_factory=dict)

    def unique(self, wish: str) -> str:
        """A plan-wide unique name, close to the wish; PostgreSQL leaves some columns without a name."""
        base = wish or "column"
        while len(base.encode()) > MAX_NAME_BYTES - 4:
            base = base[:-1]
        name, number = base, 1
        while name in self.taken or is_internal(name):
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def rows_of(self, operator: Operator) -> str:
        """The rows of an operator as SQL with the alias `t`; the same operator is written once."""
        known = self.written.get(id(operator))
        if known is None or known[0] is not operator:
            known = self.written[id(operator)] = (operator, f"({postgres_sql(operator)}) as t")
        return known[1]

    def prefetch_types(self, from_sql: str, expressions: Sequence[str]) -> None:
        """Ask for types that will be needed, all at once; what cannot be answered so is asked one by one."""
        with suppress(CommandRefused, UnsupportedQuery):
            self.types_of(from_sql, expressions)

    def type(self, from_sql: str, expression: str) -> PgType:
        """The type of an expression over the rows of `from_sql`."""
        return self.types_of(from_sql, [expression])[0]

    def types_of(self, from_sql: str, expressions: Sequence[str]) -> list[PgType]:
        """The types of several expressions; PostgreSQL is asked once for each."""
        asked = [e for e in dict.fromkeys(expressions) if (from_sql, e) not in self.types]
        if asked:
            try:
                found = self.typer(from_sql, asked)
            except CommandRefused as refusal:
                if refusal.refused_with != _NO_COLUMN:
                    raise
                raise refuse(f"a part that PostgreSQL gives no type ({refusal.message})") from refusal
            self.types.update({(from_sql, e): t for e, t in zip(asked, found, strict=True)})
        return [self.types[from_sql, e] for e in expressions]

    def count_relation(self) -> None:
        """One more table or function is read."""
        self.relations += 1
        if self.relations > self.limits.max_relations:
            raise self.limits.limit_error("max_relations")

    def count_subquery(self) -> None:
        """One more subquery inside an expression is analysed."""
        self.subqueries += 1
        if self.subqueries > self.limits.max_subqueries:
            raise self.limits.limit_error("max_subqueries")
