"""The command `adopt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from pgtrickle.commands import adopt as command
from pgtrickle.commands.status import table_status
from pgtrickle.interfaces.cli.options import (
    AppendOnly,
    AuxiliaryResults,
    CdcMode,
    DiamondConsistency,
    DiamondSchedulePolicy,
    Dsn,
    Json,
    KeepChanges,
    Mode,
    OnDivergence,
    PoolerCompatibility,
    Schedule,
    TableTimeout,
    Tier,
    given_options,
)
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.interfaces.cli.validate import INCOMPLETE

if TYPE_CHECKING:
    from pgtrickle.commands.adopt import AdoptionPlan

View = Annotated[
    str,
    Argument(
        show_default=False,
        metavar="NAME",
        help="The materialized view, written as in SQL: sales, shop.sales, '\"Sales\"'.",
    ),
]
DryRun = Annotated[
    bool,
    Option(
        "--dry-run",
        help="Change nothing; show the refresh mode, what a change reads, what is kept, and what is missing.",
    ),
]


def adopt(
    name: View,
    schedule: Schedule = None,
    mode: Mode = None,
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
    """Turn a materialized view into a stream table.

    It keeps its name, rows, indexes, owner, grants, comments and dependent views. The first refresh brings
    the rows up to date.
    """
    if dry_run:
        _show_plan(command.adoption_plan(dsn, name, mode or "AUTO"), json)
        return
    options = given_options(
        schedule=schedule,
        refresh_mode=mode,
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
    notices = command.adopt(dsn, name, options)
    adopted = table_status(dsn, name)
    if json:
        print_json(adopted)
        return
    say(
        [
            f"Materialized view {adopted.name} is a stream table now, with the rows that it had.",
            "A running sidecar (`pgtrickle run`) brings it up to date;"
            f" `pgtrickle refresh {adopted.name}` does so now.",
            *notices,
        ]
    )


def _show_plan(plan: AdoptionPlan, json: bool) -> None:
    if json:
        print_json(plan)
    else:
        say(_sentences(plan))
    if plan.missing_grants or plan.obstacles:
        raise Exit(INCOMPLETE)


def _sentences(plan: AdoptionPlan) -> list[str]:
    because = f", because: {plan.reason}" if plan.reason else ""
    return [
        f"Materialized view {plan.name}, about {plan.rows:,} rows",
        f"Refresh mode: {plan.effective_mode.value} (requested: {plan.asked_mode.value}){because}",
        *_listed("A refresh reads, if every source has changed", plan.reads),
        *_listed("Kept", plan.kept),
        *_listed("In the way", plan.obstacles),
        *_listed("Missing indexes", plan.missing_indexes, end=";"),
        *_listed("Missing grants", plan.missing_grants, end=";"),
        "Nothing was changed.",
    ]


def _listed(title: str, lines: tuple[str, ...], end: str = "") -> list[str]:
    return [f"{title}:", *(f"  {line}{end}" for line in lines)] if lines else [f"{title}: none"]
