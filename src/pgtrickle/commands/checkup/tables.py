"""Checks of the stream tables: their states, rights, triggers and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from shlex import quote
from typing import Final

from pgtrickle.commands.checkup.patient import Patient, call, listed
from pgtrickle.commands.top import TableActivity, read_activity
from pgtrickle.model.finding import Finding, failure, ok, unchecked, warning
from pgtrickle.model.table_state import StreamTableState

LARGE_BUFFER_BYTES: Final = 1 << 30
_MOST: Final = 20
"""How many findings of a kind are listed individually."""


def check_states(patient: Patient) -> Iterator[Finding]:
    """Stream tables that do not follow their sources."""
    tables = list(read_activity(patient.connection).tables)
    failing = _in_state(tables, StreamTableState.FAILING)
    suspended = _in_state(tables, StreamTableState.SUSPENDED)
    late = _in_state(tables, StreamTableState.LATE)
    waiting = [one for one in _in_state(tables, StreamTableState.WAITING) if patient.sidecars]
    for table in failing[:_MOST]:
        what = " ".join((table.problem or "its error is shown to its owner only").split())
        yield failure(
            "stream tables", f"{table.name} fails: {what}", f"`pgtrickle status {quote(str(table.name))}`"
        )
    for table in suspended[:_MOST]:
        what = f": {' '.join(table.problem.split())}" if table.problem else ""
        yield failure(
            "stream tables",
            f"{table.name} is suspended{what}",
            call("resume_stream_table", str(table.name)),
        )
    if late:
        yield warning(
            "stream tables",
            f"{_counted(late)} later than scheduled: {_named(late)}",
            "`pgtrickle top`; see docs/TROUBLESHOOTING.md, Refreshes are slow",
        )
    for problem, group in groupby(sorted(waiting, key=_problem), key=_problem):
        found = list(group)
        yield warning(
            "stream tables",
            f"{_named(found)}: {problem}",
            "remove what they wait for: `pgtrickle undrain`, `pgtrickle ungate SOURCE`",
        )
    problems = len(failing) + len(suspended) + len(late) + len(waiting)
    if not problems and not patient.sidecars and tables:
        yield unchecked("stream tables", "whether they keep up was not checked: no sidecar is running")
    elif not problems:
        yield ok("stream tables", f"{len(tables):,}, none of them in trouble" if tables else "there are none")
    elif len(failing) > _MOST or len(suspended) > _MOST:
        yield failure(
            "stream tables",
            f"in total, {len(failing):,} fail and {len(suspended):,} are suspended",
            "`pgtrickle top --once`",
        )


def check_rights(patient: Patient) -> Iterator[Finding]:
    """The privileges of the sidecar's role and of owners, for what is there."""
    if not patient.is_sidecar_role:
        yield unchecked("privileges", f"only {patient.role} sees what stream tables need")
        return
    lacking = patient.rows("missing_rights")
    for grant, role, count, name in lacking[:_MOST]:
        for_what = "refreshes need it" if not count else f"{_needs(count, name)} it"
        yield failure("privileges", f"{role} lacks a privilege: {for_what}", grant)
    if len(lacking) > _MOST:
        grants = "; ".join(row[0] for row in lacking[_MOST:])
        yield failure("privileges", f"{len(lacking) - _MOST:,} more privileges are missing", grants)
    hidden = patient.rows("hidden_rows")
    for name, reason in hidden[:_MOST]:
        yield failure("privileges", f"{name}: {reason}", "see docs/SECURITY.md, Row-level security")
    if not lacking and not hidden:
        yield ok("privileges", f"{patient.role} and all owners have what the stream tables need")


def check_triggers(patient: Patient) -> Iterator[Finding]:
    """The triggers that capture changes, on every source and every part of it."""
    wrong = patient.rows("triggers")
    for table, trigger, event, is_present, enable, reader in wrong[:_MOST]:
        if is_present:
            yield failure("triggers", f"the trigger {trigger} of {table} is off: {event} is missed", enable)
        else:
            repair = call("repair_stream_table", reader)
            yield failure("triggers", f"the trigger {trigger} of {table} is missing", repair)
    if len(wrong) > _MOST:
        more = f"{len(wrong) - _MOST:,} more triggers are missing or off"
        yield failure("triggers", more, "select * from pgtrickle.repair()")
    if not wrong:
        (count,) = patient.row("select count(*) from pgtrickle.trigger_inventory()")
        yield ok("triggers", f"all {count:,} are present and enabled" if count else "none are needed yet")
    yield from _check_capture(patient, has_gaps=bool(wrong))


def _check_capture(patient: Patient, *, has_gaps: bool) -> Iterator[Finding]:
    """What triggers rely on: their functions and buffers."""
    if not patient.is_sidecar_role:
        yield unchecked("capture", f"only {patient.role} can see change buffers and trigger functions")
        return
    gaps = patient.connection.execute(
        "select pgtrickle_internal.printed(g.source), g.gap"
        " from pgtrickle_internal.capture_gaps() g order by 1"
    ).fetchall()
    if not has_gaps:
        for source, gap in gaps[:_MOST]:
            yield failure("capture", f"{source}: {gap}", "select * from pgtrickle.repair()")
    if not gaps:
        yield ok("capture", "trigger functions and change buffers are intact")


def check_guards(patient: Patient) -> Iterator[Finding]:
    """The triggers that refuse direct writes to stream tables."""
    bare = [row[0] for row in patient.rows("guards")]
    for name in bare[:_MOST]:
        yield failure(
            "guards",
            f"{name} is not protected against direct writes",
            call("repair_stream_table", name),
        )
    if not bare:
        yield ok("guards", "every stream table refuses direct writes")


def check_buffers(patient: Patient) -> Iterator[Finding]:
    """Change buffers that grow because somebody does not read them."""
    rows = patient.connection.execute(
        "select source_table, stream_table, pending_rows, buffer_bytes from pgtrickle.change_buffer_sizes()"
        " order by source_table, pending_rows desc"
    ).fetchall()
    large = False
    for source, group in groupby(rows, key=lambda row: row[0]):
        _, reader, pending, size = next(group)
        if size is not None and size >= LARGE_BUFFER_BYTES:
            large = True
            yield warning(
                "buffers",
                f"the changes of {source} take {size / (1 << 30):.1f} GB;"
                f" {reader} has {pending:,} of them to read",
                f"`pgtrickle status {quote(reader)}` says what it waits for; resume or drop it",
            )
    if not large:
        total = sum({source: size or 0 for source, _, _, size in rows}.values())
        yield ok("buffers", f"change buffers take {total / (1 << 20):,.1f} MB")


def _in_state(tables: list[TableActivity], state: StreamTableState) -> list[TableActivity]:
    return [table for table in tables if table.state is state]


def _problem(table: TableActivity) -> str:
    return table.problem or "it waits"


def _named(tables: list[TableActivity]) -> str:
    return listed(str(table.name) for table in tables)


def _counted(tables: list[TableActivity]) -> str:
    return "1 stream table is" if len(tables) == 1 else f"{len(tables):,} stream tables are"


def _needs(count: int, name: str) -> str:
    return f"{name} needs" if count == 1 else f"{count:,} stream tables need"
