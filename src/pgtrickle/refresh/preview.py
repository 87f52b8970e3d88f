"""Tries out a refresh and rolls it back: what it would do, why, and which rows it would insert and delete.

The refresh itself runs, so the preview is right by construction. Like any refresh it holds the claim of the
stream table; readers and writers do not notice it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

from pgtrickle.catalog.repairs import Cause
from pgtrickle.model.changes import ChangeKind, Preview, PreviewedChange, row_from_json
from pgtrickle.model.errors import Busy, RefreshFailed, SparkLost, UnknownStreamTable
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, ChangeFeed, RefreshOutcome, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, set_locally, sql
from pgtrickle.postgres.pool import FOR_REFRESH
from pgtrickle.postgres.settings import MEANING, TRANSPORT
from pgtrickle.refresh.claim import Claim, Overtaken, RefreshRequest, claim_together
from pgtrickle.refresh.divergence import REASONS, repairable_failures
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.faults import Altered
from pgtrickle.refresh.outcome import Failure, Result, name_of, not_refreshed
from pgtrickle.refresh.prepare import prepare_all
from pgtrickle.refresh.waves import rehearse_waves

MOST_ROWS: Final = 1000
MOST_BYTES: Final = 8 << 20
"""A preview has at most this many rows, and texts of this size."""
SPARK_SECONDS: Final = 180.0
ATTEMPTS: Final = 3
BUSY_SECONDS: Final = 10.0
"""How long a preview waits for a stream table that another session holds."""
BUSY_PAUSE: Final = 0.1
_TRANSPORT: Final = {name: TRANSPORT[name] for name in MEANING if name in TRANSPORT}
_ANY_NUMBER: Final = 1 << 62


def preview(engine: Engine, group: Sequence[StreamTableId], table: StreamTable, seconds: float) -> Preview:
    """Try out a refresh of the group, given in dependency order, and return what it would do to the table."""
    with engine.timeouts.previewing(table, seconds) as limit:
        limit.doing = "waiting for Spark"
        for _ in range(ATTEMPTS):
            # if Spark has died, or the sources were altered, start over
            with suppress(SparkLost, Altered, Overtaken):
                return _preview_when_free(engine, group, table, time.monotonic() + min(seconds, BUSY_SECONDS))
            engine.forget(*group)
    raise RefreshFailed("the sources were altered during every attempt to preview", hint="try again later")


def _preview_when_free(
    engine: Engine, group: Sequence[StreamTableId], table: StreamTable, deadline: float
) -> Preview:
    """Wait while another session, perhaps of the sidecar itself, holds the stream table for a moment."""
    while True:
        try:
            return _preview(engine, group, table)
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(BUSY_PAUSE)


def _preview(engine: Engine, group: Sequence[StreamTableId], table: StreamTable) -> Preview:
    members, failures = prepare_all(engine, group)
    if any(member.compilation.compiled is not None for member in members):
        engine.supply.settle(SPARK_SECONDS)
    for failure in failures:
        raise failure.error
    request = RefreshRequest(tuple(group), "preview", waits=True)
    # connections that are given back are rolled back
    with engine.pool.connections(FOR_REFRESH) as connections:
        claim = _with_recording(claim_together(engine, connections, members, request), table)
        results = rehearse_waves(engine, claim)
        if repairable_failures(results):
            # a refresh would load it again
            connections[0].rollback()
            claim = claim_together(engine, connections, members, request)
            results = rehearse_waves(engine, _with_recording(_to_repair(claim, results), table))
        return _found(connections[0], table, results)


def _with_recording(claim: Claim, table: StreamTable) -> Claim:
    """The claim, with the changes of the table recorded in a temporary table of its transaction."""
    name = RelationName("pg_temp", f"preview_{table.id}")
    claim.session.write.execute(
        "select pgtrickle_internal.create_changes_table(%s, %s)",
        (f"temporary table {name.name}", table.relation),
    )
    columns = tuple(
        column
        for (column,) in claim.session.write.execute(
            "select attname from pg_attribute where attrelid = %s and attnum > 0 and not attisdropped"
            " order by attnum",
            (table.relation,),
        )
    )
    feed = ChangeFeed(name, columns, _ANY_NUMBER)
    members = [
        member.with_table(replace(member.table, feed=feed if member.table.id == table.id else None))
        for member in claim.members
    ]
    return replace(claim, members=tuple(members))


def _to_repair(claim: Claim, results: Sequence[Result]) -> Claim:
    """The claim, with the tables that diverged marked to be loaded again."""
    diverged = {failure.table.name for failure in repairable_failures(list(results))}
    reason = REASONS[Cause.DIVERGED]
    members = [
        member.with_table(replace(member.table, reinit_reason=reason))
        if member.table.name in diverged
        else member
        for member in claim.members
    ]
    return replace(claim, members=tuple(members))


def _found(connection: Connection, table: StreamTable, results: Sequence[Result]) -> Preview:
    for result in results:
        if isinstance(result, Failure):
            raise result.error
    for result in results:
        if isinstance(result, RefreshOutcome) and name_of(result) == table.name:
            if result.action is Action.SKIP:
                raise not_refreshed(result)
            return _read(connection, table, result)
    raise UnknownStreamTable(f"stream table {table.name} was dropped")


def _read(connection: Connection, table: StreamTable, outcome: RefreshOutcome) -> Preview:
    set_locally(connection, _TRANSPORT)
    place = f"pg_temp.preview_{table.id}"
    row = connection.execute(
        "select pgtrickle_internal.changes_query(%s, %s)", (place, table.relation)
    ).fetchone()
    assert row is not None
    rows = connection.execute(
        sql.SQL(
            "select c.change, c.count, c.data::text, c.row_text, c.number, c.bytes from ("
            "select v.*, row_number() over w as number, sum(octet_length(v.row_text)) over w as bytes"
            " from ({}) v window w as (order by v.point)) c"
            " where c.number <= {} and (c.bytes <= {} or c.number = 1) order by c.number"
        ).format(sql.SQL(cast(Any, row[0])), sql.Literal(MOST_ROWS), sql.Literal(MOST_BYTES))
    ).fetchall()
    total = connection.execute(
        sql.SQL("select count(*) from {}").format(sql.SQL(cast(Any, place)))
    ).fetchone()
    assert total is not None
    return Preview(
        outcome.name,
        outcome.action,
        outcome.reason,
        outcome.rows_inserted,
        outcome.rows_deleted,
        tuple(
            PreviewedChange(ChangeKind(change), count, row_from_json(data), text)
            for change, count, data, text, *_ in rows
        ),
        total[0] > len(rows),
        outcome.milliseconds,
    )
