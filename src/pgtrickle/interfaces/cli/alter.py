"""The command `alter`."""

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
    Json,
    Mode,
    Name,
    NewStatus,
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
from pgtrickle.model.options import ON_ALTER


def alter(
    name: Name,
    query: Query = None,
    query_file: QueryFile = None,
    schedule: Schedule = None,
    mode: Mode = None,
    status: NewStatus = None,
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
    """Change the query, schedule, mode, tier, status … of a stream table; the rest stays."""
    changes = given_options(
        query=query_text(query, query_file),
        schedule=schedule,
        refresh_mode=mode,
        status=status,
        diamond_consistency=diamond_consistency,
        diamond_schedule_policy=diamond_schedule_policy,
        cdc_mode=cdc_mode,
        append_only=append_only,
        pooler_compatibility_mode=pooler_compatibility,
        tier=tier,
        refresh_timeout=refresh_timeout,
        on_divergence=on_divergence,
    )
    if not changes:
        flags = ", ".join(option.cli_flag.partition("/")[0] for option in ON_ALTER)
        raise BadParameter(f"say what to change: --query, {flags}")
    notices = define.alter(dsn, name, changes)
    altered = table_status(dsn, name)
    if json:
        print_json(altered)
        return
    options = ", ".join(option.replace("_", " ") for option in changes)
    say([f"Altered stream table {altered.name}: {options}.", *notices])
