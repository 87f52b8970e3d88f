"""Commands that define: install, create, alter, drop, resume, uninstall."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import BadParameter, Option, confirm

from pgtrickle.commands import define
from pgtrickle.commands.install import install as install_in
from pgtrickle.commands.install import uninstall as uninstall_from
from pgtrickle.commands.look import standing, standings
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
    NewStatus,
    OnDivergence,
    PoolerCompatibility,
    Query,
    QueryFile,
    Schedule,
    TableTimeout,
    Tier,
)
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.model.options import ON_ALTER

Cascade = Annotated[bool, Option("--cascade", help="Drop what reads it as well.")]
Tables = Annotated[
    bool, Option("--drop-tables", help="Drop the stream tables too, with all that depends on them.")
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]


def install(dsn: Dsn = "", json: Json = False) -> None:
    """Put pgtrickle into a database, or upgrade it there. Again is harmless."""
    done = install_in(dsn)
    if json:
        print_json({"done": done})
        return
    say(done)
    if not standings(dsn):
        say(['Next: pgtrickle create NAME --query "select …", and pgtrickle run.'])


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
    text = _text_of(query, query_file)
    if text is None:
        raise BadParameter("give the query, with --query or --query-file")
    options = _given(
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
    created = standing(dsn, name)
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
    changes = _given(
        query=_text_of(query, query_file),
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
    altered = standing(dsn, name)
    if json:
        print_json(altered)
        return
    options = ", ".join(option.replace("_", " ") for option in changes)
    say([f"Altered stream table {altered.name}: {options}.", *notices])


def drop(name: Name, cascade: Cascade = False, dsn: Dsn = "", json: Json = False) -> None:
    """Drop a stream table."""
    before = [table.name for table in standings(dsn)]
    define.drop(dsn, name, cascade=cascade)
    after = {table.name for table in standings(dsn)}
    dropped = [table for table in before if table not in after]
    if json:
        print_json({"dropped": dropped})
        return
    say(f"Dropped stream table {table}." for table in dropped)


def resume(name: Name, dsn: Dsn = "", json: Json = False) -> None:
    """Let a suspended or failed stream table go on."""
    define.resume(dsn, name)
    resumed = standing(dsn, name)
    if json:
        print_json(resumed)
        return
    say([f"Stream table {resumed.name} goes on: {resumed.status.value}."])


def uninstall(drop_tables: Tables = False, yes: Yes = False, dsn: Dsn = "", json: Json = False) -> None:
    """Take pgtrickle out of a database; stream tables stay as ordinary tables."""
    if drop_tables and not yes:
        if not sys.stdin.isatty():
            raise BadParameter("--drop-tables asks before it drops; where nobody can answer, add --yes")
        confirm(_warning(dsn), abort=True, err=True)
    done = uninstall_from(dsn, drop_tables=drop_tables)
    if json:
        print_json({"done": done})
        return
    say(done)


def _warning(dsn: str) -> str:
    names = [str(table.name) for table in standings(dsn)]
    if not names:
        return "This removes pgtrickle from the database. Go on?"
    return f"This drops {', '.join(names)} with everything that depends on them. Go on?"


def _given(**options: str | bool | None) -> define.Options:
    """The options that were given; the others keep their value, or get their default."""
    return {name: value for name, value in options.items() if value is not None}


def _text_of(query: str | None, query_file: str | None) -> str | None:
    if query is not None and query_file is not None:
        raise BadParameter("give --query or --query-file, not both")
    return query if query_file is None else text_in(query_file)


def text_in(file: str) -> str:
    """What a file says; `-` is standard input."""
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadParameter(f"cannot read {file}: {reason}") from None
