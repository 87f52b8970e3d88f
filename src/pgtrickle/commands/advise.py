"""Looks for materialized views and statements that would gain most as stream tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from pgtrickle.commands.connections import open_as_author
from pgtrickle.commands.saving import Activity, estimate_for_statement, estimate_for_view, plan_cost
from pgtrickle.commands.statements import (
    QUERIES,
    REFRESHES,
    StatementLog,
    StatementStatistics,
    parameter_numbers,
    without_parameters,
)
from pgtrickle.commands.validate import analyse, compile_only, programs_of, source_names
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.hints import call
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.plan.explain import missing_indexes
from pgtrickle.postgres.connection import Connection, DatabaseError, to_refusal
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load
from pgtrickle.refresh.compilation import Compilation

REFRESHES_READ: Final = 1000
"""How many REFRESH statements are matched with materialized views."""
_REFRESH: Final = re.compile(
    r"\s*refresh\s+materialized\s+view\s+(?:concurrently\s+)?(?P<name>.+?)"
    r"(?:\s+with\s+(?:no\s+)?data)?\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, repr=False)
class Candidate(Record):
    """A materialized view or a statement that could be a stream table.

    `effective_mode` is None if it cannot be one; then `reason` says why. `saved_ms_per_hour` is an estimate
    of the time that PostgreSQL would no longer spend; None if nothing was measured. `basis` says how it was
    found. `next_step` is what to run.
    """

    kind: str
    name: str
    query: str
    effective_mode: RefreshMode | None
    reason: str
    saved_ms_per_hour: float | None
    basis: str
    plan_cost: float
    sources: tuple[str, ...]
    missing_grants: tuple[str, ...]
    missing_indexes: tuple[str, ...]
    next_step: str


@dataclass(frozen=True, slots=True, repr=False)
class Advice(Record):
    """The candidates, best first, and notes about what could not be looked at."""

    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _View:
    name: RelationName
    query: str
    rows: int


def advise(dsn: str, limit: int = 10) -> Advice:
    """Rank the materialized views of the current role, and its `limit` most expensive statements.

    Nothing is created, and no statement is executed: PostgreSQL analyses and plans the texts with the rights
    of the caller, and only texts of the caller's own role.
    """
    with open_as_author(dsn) as connection:
        log = StatementLog(connection)
        refreshes = log.matching(REFRESHES, REFRESHES_READ)
        views = rows_as(_view, connection.execute(load("pgtrickle.commands", "sql/advisable_views.sql")))
        found = [_view_candidate(dsn, connection, view, refreshes) for view in views]
        statements = log.matching(QUERIES, limit)
        looked_at = [_statement_candidate(dsn, connection, one) for one in statements]
        found += [candidate for candidate in looked_at if candidate is not None]
        notes = [] if log.problem is None else [log.problem]
        if skipped := sum(candidate is None for candidate in looked_at):
            notes.append(f"{skipped} statements cannot be analysed without their constants")
        notes += _notes_about_others(connection)
    return Advice(tuple(sorted(found, key=_rank)), tuple(notes))


def _rank(candidate: Candidate) -> tuple[bool, bool, float, float]:
    """What can be incremental comes first, then what was measured, then what costs most."""
    return (
        candidate.effective_mode is not RefreshMode.DIFFERENTIAL,
        candidate.saved_ms_per_hour is None,
        -(candidate.saved_ms_per_hour or 0.0),
        -candidate.plan_cost,
    )


def _view_candidate(
    dsn: str, connection: Connection, view: _View, refreshes: tuple[StatementStatistics, ...]
) -> Candidate:
    empty = Candidate(
        "materialized view", str(view.name), view.query, None, "", None, "", 0.0, (), (), (), ""
    )
    compiled = _compiled(dsn, view.query)
    if isinstance(compiled, PgTrickleError):
        return replace(empty, reason=compiled.message, next_step=compiled.hint or "")
    compilation, grants = compiled
    matching = [one for one in refreshes if _refreshes(connection, one.query, view.name)]
    cost = plan_cost(connection, view.query)
    activity = Activity.of(connection, [source.relation for source in compilation.sources])
    saving = estimate_for_view(matching, activity, compilation.effective_mode, cost)
    return replace(
        _described(empty, compilation, grants),
        saved_ms_per_hour=saving.milliseconds_per_hour,
        basis=saving.basis,
        plan_cost=cost,
        next_step=call("adopt_materialized_view", view.name),
    )


def _statement_candidate(dsn: str, connection: Connection, one: StatementStatistics) -> Candidate | None:
    """None if the text cannot be analysed, or cannot be a stream table."""
    try:
        query = without_parameters(connection, one.query)
    except DatabaseError:
        return None
    compiled = _compiled(dsn, query)
    if isinstance(compiled, PgTrickleError):
        return None
    compilation, grants = compiled
    if not compilation.sources:
        return None
    cost = plan_cost(connection, query)
    saving = estimate_for_statement(one, cost, compilation.effective_mode)
    numbers = parameter_numbers(one.query)
    listed = ", ".join(f"${number}" for number in numbers)
    step = f"create a stream table from it; {call('create_stream_table', '…')} takes the query"
    if numbers:
        step = (
            f"create a stream table from the query without its conditions on {listed}, with the compared"
            " columns in its result and an index on them; ask that one with the conditions"
        )
    empty = Candidate("statement", one.id, one.query, None, "", None, "", 0.0, (), (), (), step)
    return replace(
        _described(empty, compilation, grants),
        saved_ms_per_hour=saving.milliseconds_per_hour,
        basis=saving.basis,
        plan_cost=cost,
    )


def _described(empty: Candidate, compilation: Compilation, grants: tuple[str, ...]) -> Candidate:
    return replace(
        empty,
        effective_mode=compilation.effective_mode,
        reason=compilation.reason,
        sources=source_names(compilation),
        missing_grants=grants,
        missing_indexes=tuple(missing_indexes(*programs_of(compilation))),
    )


def _compiled(dsn: str, query: str) -> tuple[Compilation, tuple[str, ...]] | PgTrickleError:
    """The compilation of a query and the grants that it lacks, or why it cannot be a stream table."""
    try:
        definition, grants = analyse(dsn, f"pgtrickle_{uuid4().hex}", query, RefreshMode.AUTO)
        if not grants:
            _check(dsn, query)
        return compile_only(dsn, definition), grants
    except PgTrickleError as refusal:
        return refusal
    except DatabaseError as error:
        return to_refusal(error)


def _check(dsn: str, query: str) -> None:
    """Raise if the query cannot define a stream table in any mode. Nothing is created."""
    with open_as_author(dsn) as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "select pgtrickle_internal.check_candidate(v.id) from pgtrickle_internal.view_of(%s) v(id)",
            (query,),
        )


def _refreshes(connection: Connection, statement: str, name: RelationName) -> bool:
    """Whether a REFRESH names this materialized view, in our search_path."""
    found = _REFRESH.match(statement)
    if found is None:
        return False
    try:
        row = connection.execute(
            "select to_regclass(%s)::oid = to_regclass(%s)::oid", (found["name"], name.sql)
        ).fetchone()
    except DatabaseError:
        # the name was cut off, or is no name
        return False
    return row is not None and row[0] is True


def _notes_about_others(connection: Connection) -> list[str]:
    row = connection.execute(
        "select count(*), current_user from pg_catalog.pg_class c"
        " where c.relkind = 'm' and c.relowner <> quote_ident(current_user)::pg_catalog.regrole"
    ).fetchone()
    assert row is not None
    others, role = row
    if not others:
        return []
    return [
        f"{others} materialized views belong to other roles and are not analysed, because planning their"
        f" queries could run code with the rights of {role}; connect as their owners to look at them"
    ]


def _view(schema: str, name: str, query: str, rows: int) -> _View:
    return _View(RelationName(schema, name), query, rows)
