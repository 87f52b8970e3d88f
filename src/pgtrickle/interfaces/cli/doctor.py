"""`pgtrickle doctor`."""

from __future__ import annotations

import os
from typing import Annotated

from rich.text import Text
from typer import Exit, Option

from pgtrickle.commands.doctor import examine
from pgtrickle.interfaces.cli.options import Dsn, Json, ListenDsn, Master, MaxConnections
from pgtrickle.interfaces.cli.printing import output, print_json
from pgtrickle.model import settings as table
from pgtrickle.model.finding import Finding, Severity
from pgtrickle.model.hints import Interface, render
from pgtrickle.model.settings import read_settings

_STYLES = {
    Severity.OK: "green",
    Severity.WARN: "yellow",
    Severity.ERROR: "bold red",
    Severity.UNCHECKED: "dim",
}
_WIDEST = max(len(severity.value) for severity in Severity)

StartSpark = Annotated[
    bool, Option("--spark", help="Also start a Spark on this host and compute with it; takes seconds.")
]
OnlyProblems = Annotated[bool, Option("--problems", help="Leave out what is OK.")]


def doctor(
    start_spark: StartSpark = False,
    problems: OnlyProblems = False,
    dsn: Dsn = "",
    listen_dsn: ListenDsn = table.LISTEN_DSN.default,
    max_connections: MaxConnections = table.MAX_CONNECTIONS.default,
    spark_master: Master = table.SPARK_MASTER.default,
    json: Json = False,
) -> None:
    """Check the installation, and say what to do.

    Checks privileges, versions, triggers, poolers, Java, Spark, indexes, statistics, long transactions and
    more. Each finding is OK, WARN, ERROR, or UNCHECKED with the reason. Nothing is changed. The exit
    status is 1 if there is an ERROR. Run it as the role of the sidecar: others may not see everything.
    """
    settings = read_settings(
        os.environ,
        dsn=dsn,
        listen_dsn=listen_dsn,
        max_connections=str(max_connections),
        spark_master=spark_master,
    )
    found: list[Finding] = []
    for finding in examine(settings, start_spark=start_spark):
        found.append(finding)
        if not json and not (problems and finding.severity is Severity.OK):
            _print(finding)
    if json:
        print_json([one for one in found if not (problems and one.severity is Severity.OK)])
    else:
        _print_totals(found)
    if any(finding.severity is Severity.ERROR for finding in found):
        raise Exit(1)


def _print(finding: Finding) -> None:
    console = output()
    label = f"{finding.severity.value:<{_WIDEST}}"
    line = Text.assemble((label, _STYLES[finding.severity]), f"  {finding.check}: {finding.message}")
    console.print(line, soft_wrap=not console.is_terminal)
    if finding.remedy:
        remedy = Text(f"{'':<{_WIDEST}}  → {render(finding.remedy, Interface.CLI)}")
        # never broken by us, so that a statement can be copied
        console.print(remedy, soft_wrap=True)


def _print_totals(found: list[Finding]) -> None:
    counts = {severity: sum(one.severity is severity for one in found) for severity in Severity}
    words = [f"{count} {severity.value}" for severity, count in counts.items() if count]
    output().print(", ".join(words), style="bold")
