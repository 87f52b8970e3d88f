"""Claims of stream tables: the lock under which one is refreshed, and whether its refresh may start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgtrickle.catalog.identity import Installation
from pgtrickle.catalog.tables import some_stream_tables
from pgtrickle.model.errors import Drained, SourceGated, Suspended, WaitsForTriggers
from pgtrickle.model.hints import call
from pgtrickle.model.stream_table import Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import row_as, rows_as
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class _Claim:
    """Whether the refresh of a stream table may start: `gate` and `triggers` say what it waits for."""

    id: StreamTableId
    installation: str
    may_start: bool
    gate: str | None
    triggers: str | None


def claim(
    connection: Connection,
    table: StreamTableId,
    *,
    wait: bool,
    check: Callable[[Installation], None] = Installation.check,
) -> StreamTable | None:
    """Lock a stream table until this transaction ends; None if another session holds it or it was dropped."""
    found = claim_all(connection, (table,), wait=wait, check=check)
    return found[0] if found else None


def claim_all(
    connection: Connection,
    tables: Sequence[StreamTableId],
    *,
    wait: bool,
    check: Callable[[Installation], None] = Installation.check,
) -> tuple[StreamTable, ...]:
    """Lock stream tables until this transaction ends, except those that others hold or that were dropped.

    While it is held, other sessions can request a refresh, but not claim or alter the table. Raises if the
    database is drained, if a source is gated or waits for triggers, or if `check` refuses the installation,
    which the caller may see for the first time here.
    """
    name = "claim_waiting.sql" if wait else "claim.sql"
    statement = load("pgtrickle.catalog", f"sql/queries/{name}")
    claims = rows_as(_Claim, connection.execute(statement, (list(tables),)))
    if not claims:
        return ()
    check(Installation.parse(claims[0].installation))
    found = some_stream_tables(connection, [claim.id for claim in claims])
    obstacles = {claim.id: claim for claim in claims}
    for table in found:
        _check_startable(table, obstacles[table.id])
    return found


def check_startable(connection: Connection, table: StreamTable) -> None:
    """Raise if a refresh of the stream table cannot start until someone acts."""
    result = connection.execute(
        "select %(id)s::bigint as id, pgtrickle_internal.installation() as installation,"
        " not exists (select from pgtrickle.pgt_drain) as may_start,"
        " pgtrickle_internal.gate_before(%(id)s) as gate, null as triggers",
        {"id": table.id},
    )
    claim = row_as(_Claim, result)
    Installation.parse(claim.installation).check()
    _check_startable(table, claim)


def check_not_suspended(table: StreamTable) -> None:
    """Raise the error that suspended a stream table."""
    if table.status is Status.SUSPENDED:
        because = f": {table.last_error}" if table.last_error else ""
        raise Suspended(
            f"{table.name} is suspended{because}",
            hint=f"to resume it, run {call('resume_stream_table', table.name)}",
        )


def _check_startable(found: StreamTable, claim: _Claim) -> None:
    if not claim.may_start:
        raise Drained(
            f"{found.name} cannot be refreshed now: the database is drained or disabled",
            hint="to let refreshes start again, run select pgtrickle.undrain(),"
            " or select pgtrickle.set_enabled(true)",
        )
    if claim.gate is not None:
        raise SourceGated(
            f"{found.name} cannot be refreshed now: {claim.gate}",
            hint="to let it be refreshed again, run "
            + call("ungate_source", claim.gate.partition(" has been gated since ")[0]),
        )
    if claim.triggers is not None:
        raise WaitsForTriggers(
            f"{found.name} is not refreshed: {claim.triggers}",
            hint="the sidecar keeps trying to create them",
        )
