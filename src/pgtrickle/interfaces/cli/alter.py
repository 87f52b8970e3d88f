"""The command `alter`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from typer import BadParameter

from pgtrickle.commands import define
from pgtrickle.commands.status import table_status
from pgtrickle.interfaces.cli.options import (
    Dsn,
    Json,
    Name,
    Query,
    QueryFile,
    changed_option,
    given_options,
)
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.interfaces.cli.text_files import query_text
from pgtrickle.model.options import ON_ALTER

Schedule: TypeAlias = Annotated[str | None, changed_option("schedule")]
Mode: TypeAlias = Annotated[str | None, changed_option("refresh_mode")]
Status: TypeAlias = Annotated[str | None, changed_option("status")]
DiamondConsistency: TypeAlias = Annotated[str | None, changed_option("diamond_consistency")]
DiamondSchedulePolicy: TypeAlias = Annotated[str | None, changed_option("diamond_schedule_policy")]
CdcMode: TypeAlias = Annotated[str | None, changed_option("cdc_mode")]
AppendOnly: TypeAlias = Annotated[bool | None, changed_option("append_only")]
PoolerCompatibility: TypeAlias = Annotated[bool | None, changed_option("pooler_compatibility_mode")]
Tier: TypeAlias = Annotated[str | None, changed_option("tier")]
TableTimeout: TypeAlias = Annotated[str | None, changed_option("refresh_timeout")]
OnDivergence: TypeAlias = Annotated[str | None, changed_option("on_divergence")]
KeepChanges: TypeAlias = Annotated[str | None, changed_option("keep_changes")]
AuxiliaryResults: TypeAlias = Annotated[str | None, changed_option("auxiliary_results")]


def alter(
    name: Name,
    query: Query = None,
    query_file: QueryFile = None,
    schedule: Schedule = None,
    mode: Mode = None,
    status: Status = None,
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
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Change the query or options of a stream table.

    Options that you do not give keep their values.
    """
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
        keep_changes=keep_changes,
        auxiliary_results=auxiliary_results,
    )
    if not changes:
        flags = ", ".join(option.cli_flag.partition("/")[0] for option in ON_ALTER)
        raise BadParameter(f"nothing to change: give at least one of --query, {flags}")
    notices = define.alter(dsn, name, changes)
    altered = table_status(dsn, name)
    if json:
        print_json(altered)
        return
    options = ", ".join(option.replace("_", " ") for option in changes)
    say([f"Altered stream table {altered.name}: {options}.", *notices])
