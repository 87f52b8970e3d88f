"""Checks of what makes refreshes slow: missing indexes, old statistics, long transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from pgtrickle.commands.checkup.patient import Patient, listed
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.finding import Finding, ok, unchecked, warning
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import DatabaseError

LONG_SECONDS: Final = 300
"""From this age on, a transaction is worth a look."""
LARGE_ROWS: Final = 10_000
"""Smaller sources are scanned as fast as they are looked up."""
COMPILE_SECONDS: Final = 15.0
"""How long to look for missing indexes. The rest is reported as not checked."""
_MOST: Final = 20


def check_lookups(patient: Patient) -> Iterator[Finding]:
    """Indexes that refreshes would use and that do not exist, on sources that are not small."""
    wanted = patient.rows("large_readers", {"rows": LARGE_ROWS})
    deadline = time.monotonic() + COMPILE_SECONDS
    indexes: dict[str, list[str]] = {}
    failed: list[str] = []
    checked = 0
    for number, name, large in wanted:
        if time.monotonic() > deadline:
            break
        try:
            for index in _missing_indexes(patient, StreamTableId(number)):
                if any(f" on {source} (" in index for source in large):
                    indexes.setdefault(index, []).append(name)
            checked += 1
        except (PgTrickleError, DatabaseError):
            failed.append(name)
    for index, readers in list(indexes.items())[:_MOST]:
        yield warning(
            "lookups",
            f"refreshes of {listed(readers)} scan a large source, because an index is missing",
            index.replace("create index on", "create index concurrently on", 1),
        )
    if len(indexes) > _MOST:
        yield warning(
            "lookups", f"{len(indexes) - _MOST:,} more indexes are missing", "`pgtrickle explain NAME`"
        )
    if failed:
        yield unchecked("lookups", f"you cannot compile the queries of {listed(failed)}")
    left = len(wanted) - checked - len(failed)
    if left:
        yield unchecked(
            "lookups",
            f"{left:,} of {len(wanted):,} stream tables were left out after {COMPILE_SECONDS:.0f} s",
            "`pgtrickle explain NAME` lists the indexes that one lacks",
        )
    if checked and not indexes:
        yield ok("lookups", f"no index is missing for {checked:,} stream tables over large sources")
    elif not wanted:
        yield ok("lookups", f"no followed source has {LARGE_ROWS:,} rows, so indexes hardly matter")


def _missing_indexes(patient: Patient, table: StreamTableId) -> list[str]:
    # imported here: the compiler takes a while to load
    from pgtrickle.commands.validate import read_definition
    from pgtrickle.plan.compile import Compiled
    from pgtrickle.plan.explain import missing_indexes
    from pgtrickle.plan.programs import programs_for_all
    from pgtrickle.refresh.compilation import compile_definition

    with patient.connection.transaction(force_rollback=True):
        compiled = compile_definition(patient.connection, read_definition(patient.connection, table)).compiled
        if not isinstance(compiled, Compiled):
            return []
        return missing_indexes(*programs_for_all(compiled))


def check_statistics(patient: Patient) -> Iterator[Finding]:
    """Sources that PostgreSQL plans for with statistics it does not have, or that are out of date."""
    is_on, counts = patient.row(
        "select current_setting('autovacuum') = 'on', current_setting('track_counts') = 'on'"
    )
    if not is_on:
        yield warning(
            "statistics",
            "autovacuum is off: statistics grow old and dead rows stay",
            "alter system set autovacuum = on; select pg_reload_conf()",
        )
    if not counts:
        yield unchecked("statistics", "track_counts is off, so changes since the last ANALYZE are not known")
        return
    stale = patient.rows("stale_statistics")
    for name, is_never in stale[:_MOST]:
        told = "has never been analyzed" if is_never else "has changed a lot since it was last analyzed"
        yield warning("statistics", f"{name} {told}", f"analyze {name}")
    if len(stale) > _MOST:
        yield warning("statistics", f"{len(stale) - _MOST:,} more tables need it", "analyze")
    if not stale:
        yield ok("statistics", "all sources have recent statistics")


def check_transactions(patient: Patient) -> Iterator[Finding]:
    """Transactions that keep change buffers and dead rows from being removed."""
    found = patient.rows("long_transactions", {"seconds": LONG_SECONDS})
    for who, seconds, what, remedy in found[:_MOST]:
        yield warning("transactions", f"{who} has been open for {_age(seconds)}: {what}", remedy)
    (is_seen, user) = patient.row(
        "select pg_has_role('pg_read_all_stats', 'USAGE'), quote_ident(current_user)"
    )
    if not is_seen:
        yield unchecked(
            "transactions",
            f"{user} does not see when transactions of other roles began",
            f"grant pg_read_all_stats to {user}",
        )
    elif not found:
        yield ok("transactions", f"none has been open for {_age(LONG_SECONDS)}")


def _age(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"
