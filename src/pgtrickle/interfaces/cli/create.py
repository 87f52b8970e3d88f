"""The command `create`."""

from __future__ import annotations

import shlex
from typing import Annotated

from typer import BadParameter, Option

from pgtrickle.commands import define
from pgtrickle.commands.status import NO_SIDECAR, StreamTableStatus, table_status
from pgtrickle.interfaces.cli.options import (
    AppendOnly,
    AuxiliaryResults,
    CdcMode,
    DiamondConsistency,
    DiamondSchedulePolicy,
    Dsn,
    Initialize,
    Json,
    KeepChanges,
    Mode,
    Name,
    OnDivergence,
    PoolerCompatibility,
    Query,
    QueryFile,
    Schedule,
    TableTimeout,
    Tier,
    given_options,
)
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.interfaces.cli.text_files import query_text
from pgtrickle.interfaces.cli.validate import show_validation

DryRun = Annotated[
    bool,
    Option(
        "--dry-run", help="Create nothing; show the refresh mode, and which indexes and grants are missing."
    ),
]

OrReplace = Annotated[
    bool,
    Option("--or-replace", help="If it exists, change its query and options to these instead of refusing."),
]


def create(
    name: Name,
    query: Query = None,
    query_file: QueryFile = None,
    or_replace: OrReplace = False,
    schedule: Schedule = None,
    mode: Mode = None,
    initialize: Initialize = None,
    diamond_consistency: DiamondConsistency = None,
    diamond_schedule_policy: DiamondSchedulePolicy = None,
    cdc_mode: CdcMode = None,
    append_only: AppendOnly = None,
    pooler_compatibility: PoolerCompatibility = None,
    tier: Tier = None,
    refresh_timeout: TableTimeout = None,
    on_divergence: OnDivergence = None,
    keep_changes: KeepChanges = None,
    auxiliary_results: AuxiliaryResults = None,
    dry_run: DryRun = False,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Create a stream table from a query.

    It is empty at first. A running sidecar loads it; `pgtrickle refresh NAME` loads it at once.
    """
    text = query_text(query, query_file)
    if text is None:
        raise BadParameter("the query is missing: give --query or --query-file")
    if dry_run:
        show_validation(dsn, text, mode, name, json)
        return
    options = given_options(
        schedule=schedule,
        refresh_mode=mode,
        initialize=initialize,
        diamond_consistency=diamond_consistency,
        diamond_schedule_policy=diamond_schedule_policy,
        cdc_mode=cdc_mode,
        append_only=append_only,
        pooler_compatibility_mode=pooler_compatibility,
        tier=tier,
        refresh_timeout=refresh_timeout,
        on_divergence=on_divergence,
        keep_changes=keep_changes,
        auxiliary_results=auxiliary_results,
    )
    make = define.create_or_replace if or_replace else define.create
    notices = make(dsn, name, text, options)
    created = table_status(dsn, name)
    if json:
        print_json(created)
        return
    if created.is_populated:
        say([f"Changed stream table {created.name} to this definition.", *notices])
        return
    made = f"Created stream table {created.name}. It is empty until it is loaded."
    say([made, _loading(created, is_asked=initialize is not False), *notices])


def _loading(created: StreamTableStatus, *, is_asked: bool) -> str:
    """How a new stream table gets its rows."""
    name = shlex.quote(str(created.name))
    if not is_asked:
        return f"To load it, run `pgtrickle refresh {name}`."
    if created.waits and created.waits.startswith(NO_SIDECAR):
        return f"No sidecar is running: start `pgtrickle run`, or load it with `pgtrickle refresh {name}`."
    return f"The sidecar loads it now. `pgtrickle status {name}` shows when it is done."
