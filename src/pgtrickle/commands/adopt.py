"""Turns a materialized view into a stream table, or says what that would mean."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from pgtrickle.commands.connections import open_as_author
from pgtrickle.commands.define import Options, call
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.postgres.connection import Connection, check_writable
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True, repr=False)
class AdoptionPlan(Record):
    """What a materialized view would be as a stream table.

    `reads` is what one refresh reads if all sources have changed. `kept` stays as it is, `obstacles` have to
    be removed first. `missing_grants` and `missing_indexes` are SQL statements; grants are necessary, indexes
    make refreshes faster.
    """

    name: RelationName
    rows: int
    asked_mode: RefreshMode
    effective_mode: RefreshMode
    reason: str
    sources: tuple[str, ...]
    reads: tuple[str, ...]
    kept: tuple[str, ...]
    obstacles: tuple[str, ...]
    missing_grants: tuple[str, ...]
    missing_indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _MaterializedView:
    name: RelationName
    query: str
    rows: int


def adopt(dsn: str, name: str, options: Options) -> list[str]:
    """Turn a materialized view into a stream table; return the notices about it."""
    with open_as_author(dsn) as connection:
        check_writable(connection)
        if str(options.get("refresh_mode") or "").strip().upper() == RefreshMode.DIFFERENTIAL.value:
            from pgtrickle.commands.validate import check_followable

            # what belongs to somebody else is not even parsed: that could run code of theirs
            connection.execute(
                "select pgtrickle_internal.check_adoptable(pgtrickle_internal.materialized_view(%s))", (name,)
            )
            found = _materialized_view(connection, name)
            check_followable(dsn, _name_beside(found.name), found.query)
        return call(connection, "adopt_materialized_view", {"name": name, **options})


def adoption_plan(dsn: str, name: str, refresh_mode: str = "AUTO") -> AdoptionPlan:
    """Say what `adopt` would do; raise if the materialized view cannot be adopted. Nothing is changed."""
    from pgtrickle.commands.validate import (
        analyse,
        compile_only,
        mode_named,
        programs_of,
        reads_of,
        source_names,
        try_to_create,
    )
    from pgtrickle.plan.explain import missing_indexes

    mode = mode_named(refresh_mode)
    with open_as_author(dsn) as connection:
        found = _materialized_view(connection, name)
        parts = connection.execute(
            "select fate, part, reason from pgtrickle_internal.adoption_parts(%s)", (name,)
        ).fetchall()
    beside = _name_beside(found.name)
    definition, grants = analyse(dsn, beside, found.query, mode)
    if not grants:
        try_to_create(dsn, beside, found.query, refresh_mode)
    compilation = compile_only(dsn, definition)
    return AdoptionPlan(
        found.name,
        found.rows,
        mode,
        compilation.effective_mode,
        compilation.reason,
        source_names(compilation),
        reads_of(compilation),
        tuple(part for fate, part, _ in parts if fate == "kept"),
        tuple(f"{part} ({reason})" for fate, part, reason in parts if fate == "refused"),
        grants,
        tuple(missing_indexes(*programs_of(compilation))),
    )


def _materialized_view(connection: Connection, name: str) -> _MaterializedView:
    row = connection.execute(load("pgtrickle.commands", "sql/adopted_view.sql"), {"name": name}).fetchone()
    assert row is not None
    schema, relation, query, rows = row
    return _MaterializedView(RelationName(schema, relation), query, rows)


def _name_beside(name: RelationName) -> str:
    """A name that nobody uses, in the same schema: the checks try to create a stream table there."""
    return RelationName(name.schema, f"pgtrickle_{uuid4().hex}").sql
