"""The command `refresh`."""

from __future__ import annotations

import os

from pgtrickle.commands.serving import refresh_served
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.command_engine import open_engine
from pgtrickle.interfaces.cli.options import Dsn, Json, Master, MaxErrors, MemoryLimit, Name, PathOption
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.interfaces.cli.progress import ProgressLine
from pgtrickle.model.settings import SparkPath, read_settings
from pgtrickle.model.stream_table import RefreshOutcome


def refresh(
    name: Name,
    dsn: Dsn = "",
    spark_master: Master = "local[*]",
    path: PathOption = SparkPath.AUTO,
    memory_limit: MemoryLimit = None,
    max_consecutive_errors: MaxErrors = 3,
    json: Json = False,
) -> None:
    """Refresh a stream table now.

    A running sidecar does it. Without one, this command starts its own Spark; the Spark options apply
    only then.
    """
    settings = read_settings(
        os.environ, dsn=dsn, spark_master=spark_master, path=path, memory_limit=memory_limit
    )
    with ProgressLine(f"Refreshing {name}", dsn, name):
        outcome = refresh_served(dsn, name)
    if outcome is None:
        with open_engine(settings, f"Refreshing {name}", name) as engine:
            from pgtrickle.commands import refresh as command

            outcome = command.refresh(engine, name, max_consecutive_errors)
    if json:
        print_json(outcome)
        return
    say([outcome_sentence(outcome)])


def outcome_sentence(outcome: RefreshOutcome) -> str:
    """A sentence that says what a refresh did."""
    rows = f"+{formatting.count(outcome.rows_inserted)} −{formatting.count(outcome.rows_deleted)} rows"
    took = formatting.milliseconds(outcome.milliseconds)
    return f"Refreshed {outcome.name}: {outcome.action.value}, {rows}, {took} ({outcome.reason})."
