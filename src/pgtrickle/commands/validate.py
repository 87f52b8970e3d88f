"""Compiles queries without Spark and without creating anything, to say how they would be refreshed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pgtrickle.commands.as_owner import analyse_as, execute_as
from pgtrickle.commands.attached import declaring
from pgtrickle.commands.connections import open_as_author, open_installed
from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.errors import BadOption
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import RefreshMode, RelationId, StreamTableId
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.explain import change_reads, missing_indexes
from pgtrickle.plan.program import Program
from pgtrickle.plan.programs import programs_for_all
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load
from pgtrickle.postgres.text_rows import ResultColumn
from pgtrickle.refresh.compilation import Compilation, Definition, compile_definition


@dataclass(frozen=True, slots=True, repr=False)
class Validation(Record):
    """How a query would be refreshed as a stream table, and what it lacks.

    `missing_grants` and `missing_indexes` are SQL statements. With a missing grant the stream table cannot be
    created; without an index it reads more than it needs. `reads` is what one refresh reads if all sources
    have changed. `query` is the text as PostgreSQL prints it.
    """

    asked_mode: RefreshMode
    effective_mode: RefreshMode
    reason: str
    columns: tuple[ResultColumn, ...]
    sources: tuple[str, ...]
    missing_grants: tuple[str, ...]
    missing_indexes: tuple[str, ...]
    reads: tuple[str, ...]
    query: str


def validate(
    dsn: str, query: str, refresh_mode: str = "AUTO", name: str | None = None, owner: str | None = None
) -> Validation:
    """Say how a query would be refreshed; raise if it cannot be a stream table in this mode.

    `name` is that of the stream table, which must not exist yet. `owner` is the role that would own it, by
    default that of the connection; only its rights count. Nothing is created.
    Without a name, any schema will do in which the stream table could be created.
    """
    mode = mode_named(refresh_mode)
    name = name if name is not None else _trial_name(dsn, owner)
    definition, grants = analyse(dsn, name, query, mode, owner)
    if not grants:
        try_to_create(dsn, name, query, refresh_mode, owner)
    elif owner is not None:
        # compiling parses the query again as our own role, and what it reaches was not checked
        reason = "it is not analysed further until the missing privileges are granted"
        return Validation(mode, mode, reason, (), (), grants, (), (), definition.query)
    return _validation(compile_only(dsn, definition), grants)


def _trial_name(dsn: str, owner: str | None) -> str:
    """A name that nobody uses, in a schema in which this role may create stream tables, if there is one."""
    name = f"pgtrickle_{uuid4().hex}"
    if owner is not None:
        return name
    with open_as_author(dsn) as connection:
        row = connection.execute(
            "select pgtrickle_internal.trial_schema(pg_catalog.current_schemas(false))"
        ).fetchone()
    return str(RelationName(row[0], name)) if row and row[0] else name


def check_followable(dsn: str, name: str, query: str) -> None:
    """Raise `UnsupportedQuery` if a query that its author would create now cannot be followed."""
    definition, _ = analyse(dsn, name, query, RefreshMode.DIFFERENTIAL)
    compile_only(dsn, definition)


def check_still_followable(dsn: str, table: StreamTableId) -> None:
    """The same for the query that a stream table has."""
    with open_installed(dsn) as connection:
        definition = read_definition(connection, table)
    compile_only(dsn, replace(definition, mode=RefreshMode.DIFFERENTIAL))


def read_definition(connection: Connection, table: StreamTableId) -> Definition:
    """The definition of a stream table, from what every role may read in the catalog."""
    row = connection.execute(load("pgtrickle.commands", "sql/definition.sql"), {"id": table}).fetchone()
    assert row is not None
    schema, name, query, mode, settings, captured, views, auxiliary = row
    return Definition(
        RelationName(schema, name),
        query,
        RefreshMode(mode),
        tuple(sorted(settings.items())),
        tuple(map(RelationId, captured)),
        tuple(map(RelationId, views)),
        AuxiliaryUse(auxiliary),
        table,
    )


def analyse(
    dsn: str, name: str, query: str, mode: RefreshMode, owner: str | None = None
) -> tuple[Definition, tuple[str, ...]]:
    """The definition that a query gets under the settings of its author, and the grants that it lacks."""
    found = _analyse_as_author(dsn, query, name) if owner is None else analyse_as(dsn, owner, query, name)
    schema, table, settings, canonical, captured, views, grants = found
    definition = Definition(
        RelationName(schema, table),
        canonical,
        mode,
        tuple(sorted(settings.items())),
        tuple(map(RelationId, captured)),
        tuple(map(RelationId, views)),
    )
    return definition, tuple(dict.fromkeys(grants))


def _analyse_as_author(dsn: str, query: str, name: str) -> tuple[Any, ...]:
    with open_as_author(dsn) as connection:
        return declaring(connection, lambda: _analyse(connection, query, name))


def _analyse(connection: Connection, query: str, name: str) -> tuple[Any, ...]:
    with connection.transaction(force_rollback=True):
        row = connection.execute(
            load("pgtrickle.commands", "sql/analyse_query.sql"), {"query": query, "name": name}
        ).fetchone()
        assert row is not None
        view, schema, table, settings = row
        found = connection.execute(load("pgtrickle.commands", "sql/query_sources.sql"), {"view": view})
        sources = found.fetchone() or ("", [], [])
        grants = connection.execute(
            "select g from pgtrickle_internal.missing_grants(%s::oid,"
            " quote_ident(current_user)::regrole::oid) g"
            " union all select g from pgtrickle_internal.missing_room(%s) g",
            (view, schema),
        ).fetchall()
    return schema, table, settings, *sources, [grant for (grant,) in grants]


def try_to_create(dsn: str, name: str, query: str, mode: str, owner: str | None = None) -> None:
    """Create the stream table and take it back, so that every check of its creation is made."""
    statement = sql.SQL(
        "select pgtrickle.create_stream_table({}, {}, schedule => null, refresh_mode => {})"
    ).format(sql.Literal(name), sql.Literal(query), sql.Literal(mode))
    if owner is not None:
        execute_as(dsn, owner, statement, is_kept=False)
        return
    with open_as_author(dsn) as connection, connection.transaction(force_rollback=True):
        connection.execute(statement)


def compile_only(dsn: str, definition: Definition) -> Compilation:
    """Compile a definition without creating anything."""
    with open_installed(dsn) as connection, connection.transaction(force_rollback=True):
        return compile_definition(connection, definition)


def _validation(found: Compilation, grants: tuple[str, ...]) -> Validation:
    return Validation(
        found.mode,
        found.effective_mode,
        found.reason,
        tuple(ResultColumn(name, type_.text) for name, type_ in found.outputs),
        source_names(found),
        grants,
        tuple(missing_indexes(*programs_of(found))),
        reads_of(found),
        found.query,
    )


def programs_of(found: Compilation) -> tuple[Program, ...]:
    """The programs that follow a change of all sources; none if PostgreSQL evaluates the query."""
    return programs_for_all(found.compiled) if isinstance(found.compiled, Compiled) else ()


def reads_of(found: Compilation) -> tuple[str, ...]:
    """What one refresh reads if all sources have changed."""
    if not isinstance(found.compiled, Compiled):
        return tuple(f"{source}: whole table, in PostgreSQL" for source in source_names(found))
    return tuple(change_reads(*programs_of(found)))


def source_names(found: Compilation) -> tuple[str, ...]:
    """The names of what a query reads, sorted."""
    return tuple(sorted(str(source.name) for source in found.sources))


def mode_named(text: str) -> RefreshMode:
    """The refresh mode of that name, in any case."""
    try:
        return RefreshMode(text.strip().upper())
    except ValueError:
        raise BadOption(f"{text} is not a refresh mode", hint="use AUTO, DIFFERENTIAL or FULL") from None
