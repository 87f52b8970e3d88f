"""Estimates how much time PostgreSQL would save if the result of a query were a stream table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from pgtrickle.commands.statements import StatementStatistics
from pgtrickle.model.stream_table import RefreshMode, RelationId
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load

ROW_COST: Final = 0.01
"""What the planner charges for a row that is read (cpu_tuple_cost)."""


@dataclass(frozen=True, slots=True)
class Saving:
    """An estimate; None if nothing was measured that it could be based on."""

    milliseconds_per_hour: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Activity:
    """How large the sources of a query are, and how many rows are written in them in an hour."""

    rows: int
    changes_per_hour: float | None

    @classmethod
    def of(cls, connection: Connection, sources: Sequence[RelationId]) -> Self:
        """Read what PostgreSQL has counted."""
        statement = load("pgtrickle.commands", "sql/source_activity.sql")
        row = connection.execute(statement, {"sources": list(sources)}).fetchone()
        assert row is not None
        return cls(*row)


def plan_cost(connection: Connection, query: str) -> float:
    """What the planner expects the query to cost, in its own unit. The query is not executed."""
    with connection.transaction(force_rollback=True):
        statement = sql.SQL("explain (format json) {}").format(sql.SQL(cast(Any, query.rstrip("; \n"))))
        row = connection.execute(statement).fetchone()
    assert row is not None
    return float(row[0][0]["Plan"]["Total Cost"])


def estimate_for_view(
    refreshes: Sequence[StatementStatistics], activity: Activity, mode: RefreshMode, cost: float
) -> Saving:
    """A refresh of a stream table reads what has changed; one of a materialized view reads everything."""
    calls = sum(one.calls for one in refreshes)
    if mode is RefreshMode.FULL:
        return Saving(0.0 if calls else None, "it would be recomputed in full each time, as now")
    if not calls:
        return Saving(None, f"no REFRESH was counted; the planner expects its query to cost {cost:,.0f}")
    spent = sum(one.milliseconds_per_hour for one in refreshes)
    mean = sum(one.milliseconds for one in refreshes) / calls
    per_hour = sum(one.calls / one.hours for one in refreshes)
    changed = activity.changes_per_hour or 0.0
    share = min(1.0, changed / max(per_hour, 0.001) / max(activity.rows, 1))
    return Saving(
        spent * (1 - share),
        f"{calls:,} REFRESH of {mean:,.1f} ms on average were counted; between two of them"
        f" {share:.1%} of the rows of its sources change",
    )


def estimate_for_statement(one: StatementStatistics, cost: float, mode: RefreshMode) -> Saving:
    """Reading the stored result replaces computing it; keeping it up to date is not subtracted."""
    rows = one.rows / max(one.calls, 1)
    share = min(1.0, (1 + rows) * ROW_COST / max(cost, ROW_COST))
    basis = (
        f"{one.calls:,} calls of {one.milliseconds / max(one.calls, 1):,.1f} ms on average were counted;"
        f" reading {rows:,.0f} stored rows costs {share:.1%} of that"
    )
    if mode is RefreshMode.FULL:
        basis += "; each refresh would compute it in full"
    return Saving(one.milliseconds_per_hour * (1 - share), basis)
