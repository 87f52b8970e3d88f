"""Compiles the query of a stream table, with PostgreSQL as the analyser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pgtrickle.catalog.tables import dependencies
from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.errors import CommandRefused, UnsupportedQuery
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceKind
from pgtrickle.model.stream_table import RefreshMode, RelationId, StreamTable
from pgtrickle.plan.analysis.context import QueryDefinition
from pgtrickle.plan.analysis.over_copies import over_copies
from pgtrickle.plan.compile import compile_query, regenerate
from pgtrickle.plan.expressions.array_casts import makes_arrays
from pgtrickle.plan.expressions.clock import clock_functions
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.plan.programs import QueryPrograms
from pgtrickle.plan.refusals import refuse
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.introspect import (
    aggregate_names,
    canonical,
    describe_sources,
    expression_types,
    reads_back,
    security_barrier,
    set_function_names,
    view_texts,
    virtual_column,
)
from pgtrickle.postgres.settings import Settings, is_printed_exactly

BEHIND = "the state is behind: "


@dataclass(frozen=True, slots=True)
class Compilation:
    """The result of compiling a query: differential programs, or the reason why there are none.

    `answer` is the query as PostgreSQL evaluates it.
    """

    query: str
    answer: str
    mode: RefreshMode
    outputs: tuple[tuple[str, PgType], ...]
    sources: tuple[Source, ...]
    compiled: QueryPrograms | None
    reason: str
    follows_clock: bool

    state_is_behind: str | None = None

    @property
    def upstream(self) -> tuple[Source, ...]:
        """The stream tables among the sources."""
        return tuple(source for source in self.sources if source.kind is SourceKind.STREAM_TABLE)

    @property
    def copied_sources(self) -> tuple[Source, ...]:
        """The sources without triggers, which are compared with our copy of them."""
        return tuple(source for source in self.sources if source.copy)

    def only_full(self, reason: str) -> Compilation:
        """The same query, evaluated by PostgreSQL this time; its state is out of date afterwards."""
        return replace(self, compiled=None, reason=reason, state_is_behind=f"{BEHIND}{reason}")

    @property
    def effective_mode(self) -> RefreshMode:
        """The mode in which this table is refreshed."""
        return RefreshMode.DIFFERENTIAL if self.compiled else RefreshMode.FULL


@dataclass(frozen=True, slots=True)
class CompiledTable:
    """A stream table and the compilation of its query."""

    table: StreamTable
    compilation: Compilation

    def with_table(self, table: StreamTable) -> CompiledTable:
        """The same compilation for the current row of the catalog."""
        return replace(self, table=table)

    def only_full(self, reason: str) -> CompiledTable:
        """The same table, evaluated by PostgreSQL this time."""
        return replace(self, compilation=self.compilation.only_full(reason))


@dataclass(frozen=True, slots=True)
class Definition:
    """What the compiler has to know about a stream table, which may not exist yet."""

    name: RelationName
    query: str
    mode: RefreshMode
    settings: Settings
    captured: tuple[RelationId, ...]
    views: tuple[RelationId, ...]
    auxiliary: AuxiliaryUse = AuxiliaryUse.AUTO
    stream_table: int = 0
    """The id of the stream table, if it exists."""


def compile_table(
    connection: Connection, table: StreamTable, limits: QueryLimits = USUAL_LIMITS
) -> Compilation:
    """Compile the query of a stream table; under DIFFERENTIAL, refuse what cannot be followed."""
    needs = dependencies(connection, table.id)
    definition = Definition(
        table.name,
        table.query,
        table.mode,
        table.settings,
        tuple(need.relation for need in needs if need.is_captured),
        tuple(need.relation for need in needs if need.is_view),
        table.auxiliary,
        table.id,
    )
    found, described = _compile_definition(connection, definition, limits)
    return replace(found, answer=_answer(connection, definition, described, limits))


def compile_definition(
    connection: Connection, definition: Definition, limits: QueryLimits = USUAL_LIMITS
) -> Compilation:
    """Compile a query only to describe it. Any role that may read the catalogs of PostgreSQL can do that."""
    return _compile_definition(connection, definition, limits)[0]


def _compile_definition(
    connection: Connection, definition: Definition, limits: QueryLimits
) -> tuple[Compilation, QueryDefinition]:
    text = canonical(connection, definition.query, definition.settings)
    sources = describe_sources(connection, definition.captured)
    described = QueryDefinition(
        query=text.query,
        sources={source.name: source for source in sources.values()},
        views=view_texts(connection, definition.views),
        aggregates=aggregate_names(connection),
        set_functions=set_function_names(connection),
        outputs=text.outputs,
        auxiliary=definition.auxiliary,
        stream_table=definition.stream_table,
    )
    clock = clock_functions([described.query, *described.views.values()])
    found, reason = _compile(connection, definition, described, limits)
    compilation = Compilation(
        query=definition.query,
        answer=definition.query,
        mode=definition.mode,
        outputs=text.outputs,
        sources=tuple(sources.values()),
        compiled=found,
        reason=reason,
        follows_clock=bool(clock),
    )
    return compilation, described


def _answer(
    connection: Connection, table: Definition, definition: QueryDefinition, limits: QueryLimits
) -> str:
    """The query over our copies of its sources; refused in every mode if it cannot be written that way."""
    if not any(source.copy for source in definition.sources.values()):
        return table.query
    _check_parser(connection, table, definition, limits)
    answer = over_copies(definition, limits)
    try:
        outputs = canonical(connection, answer, table.settings).outputs
    except CommandRefused as refusal:
        raise _misread(table.name) from refusal
    # a domain does not change the value
    if [(n, t.base) for n, t in outputs] != [(n, t.base) for n, t in definition.outputs]:
        raise _misread(table.name)
    return answer


def _compile(
    connection: Connection, table: Definition, definition: QueryDefinition, limits: QueryLimits
) -> tuple[QueryPrograms | None, str]:
    if table.mode is RefreshMode.FULL:
        return None, "FULL was asked for"
    try:
        texts = [definition.query, *definition.views.values()]
        if ("array_nulls", "off") in table.settings and makes_arrays(texts):
            raise UnsupportedQuery("it makes arrays from text, and was created under array_nulls = off")
        relations = [source.relation for source in definition.sources.values()]
        if not is_printed_exactly(table.settings) and (found := virtual_column(connection, relations)):
            # capture evaluates it under our settings, a read under those of the author
            raise UnsupportedQuery(
                f"a source has the virtual column {found}, and the author's settings print values differently"
            )
        barrier = security_barrier(connection, table.views)
        if barrier is not None:
            # our expressions would see rows that it hides, and an error message can quote them
            raise refuse(f"view {barrier}, a security barrier,")
        _check_parser(connection, table, definition, limits)
        if not all(reads_back(connection, view) for view in table.views):
            raise refuse("a view that PostgreSQL does not print as it is meant")
        return compile_query(definition, partial(expression_types, connection), limits), ""
    except UnsupportedQuery as refusal:
        if table.mode is RefreshMode.DIFFERENTIAL:
            raise
        return None, refusal.message


def _check_parser(
    connection: Connection, table: Definition, definition: QueryDefinition, limits: QueryLimits
) -> None:
    """Raise unless our parser understands the query and its views as PostgreSQL does."""
    texts: list[tuple[RelationName, str]] = [(table.name, definition.query), *definition.views.items()]
    for name, text in texts:
        try:
            again = canonical(connection, regenerate(text, limits), table.settings).query
        except CommandRefused as refusal:
            raise _misread(name) from refusal
        if again != canonical(connection, text, table.settings).query:
            raise _misread(name)


def _misread(name: RelationName) -> UnsupportedQuery:
    return UnsupportedQuery(f"our parser reads the query of {name} differently from PostgreSQL")
