"""The command `create`."""

from __future__ import annotations

from typer import BadParameter

from pgtrickle.commands import define
from pgtrickle.commands.status import table_status
from pgtrickle.interfaces.cli.options import (
    AppendOnly,
    CdcMode,
    DiamondConsistency,
    DiamondSchedulePolicy,
    Dsn,
    Initialize,
    Json,
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


def create(
    name: Name,
    query: Query = None,
    query_file: QueryFile = None,
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
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Create a table that follows its query."""
    text = query_text(query, query_file)
    if text is None:
        raise BadParameter("give the query, with --query or --query-file")
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
    )
    notices = define.create(dsn, name, text, options)
    created = table_status(dsn, name)
    if json:
        print_json(created)
        return
    say(
        [
            f"Created stream table {created.name}, empty so far.",
            "A running `pgtrickle run` loads and follows it; `pgtrickle refresh` loads it now.",
            *notices,
        ]
    )
