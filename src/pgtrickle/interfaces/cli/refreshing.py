"""Commands that need an engine for once: refresh, explain, verify."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from rich.text import Text
from typer import Argument, Option

from pgtrickle.commands.opening import check_known, opened
from pgtrickle.interfaces.cli import words
from pgtrickle.interfaces.cli.options import (
    Dsn,
    Json,
    Master,
    MaxErrors,
    MemoryLimit,
    Name,
    PathOption,
)
from pgtrickle.interfaces.cli.printing import output, print_json, say
from pgtrickle.interfaces.cli.progress import Waiting
from pgtrickle.model.settings import Settings, SparkPath, read_settings
from pgtrickle.model.stream_table import RefreshOutcome

if TYPE_CHECKING:
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine

OneOrAll = Annotated[str | None, Argument(show_default=False, help="One stream table; without it, all.")]
VerifyTimeout = Annotated[
    float,
    Option(
        "--timeout",
        min=0,
        max=315576000,
        help="Seconds that the comparison of one stream table may take; then it is cancelled. 0 is any.",
    ),
]


def refresh(
    name: Name,
    dsn: Dsn = "",
    spark_master: Master = "local[*]",
    path: PathOption = SparkPath.AUTO,
    memory_limit: MemoryLimit = None,
    max_consecutive_errors: MaxErrors = 3,
    json: Json = False,
) -> None:
    """Bring a stream table up to this moment."""
    settings = read_settings(
        os.environ, dsn=dsn, spark_master=spark_master, path=path, memory_limit=memory_limit
    )
    _check(dsn, name)
    with engine_for(settings, f"Refreshing {name}", name) as engine:
        from pgtrickle.commands.refresh import refresh as refresh_with

        outcome = refresh_with(engine, name, max_consecutive_errors)
    if json:
        print_json(outcome)
        return
    say([sentence(outcome)])


def explain(name: Name, dsn: Dsn = "", json: Json = False) -> None:
    """Show how a stream table is kept: operators, delta rules, what is read; if FULL, why."""
    _check(dsn, name)
    with engine_for(read_settings(os.environ, dsn=dsn), f"Compiling {name}") as engine:
        from pgtrickle.commands.explain import explain as explain_with

        explanation = explain_with(engine, name)
    if json:
        print_json(explanation)
        return
    output().print(Text(explanation.text.rstrip()), soft_wrap=True)


def verify(name: OneOrAll = None, dsn: Dsn = "", timeout: VerifyTimeout = 3600.0, json: Json = False) -> None:
    """Compare stream tables with PostgreSQL's own answer at the same moment."""
    _check(dsn, name)
    settings = read_settings(os.environ, dsn=dsn)
    with engine_for(settings, f"Comparing {name or 'every stream table'}") as engine:
        from pgtrickle.commands.verify import verify as verify_with

        verified = verify_with(engine, name, timeout or None)
    if json:
        print_json(verified)
        return
    for table in verified:
        took = words.milliseconds(table.milliseconds)
        say([f"{table.name} equals its query: {words.count(table.rows)} rows ({took})."])
    if not verified:
        say(["There is nothing to compare: no stream table has been loaded."])


def sentence(outcome: RefreshOutcome) -> str:
    """What a refresh did."""
    changed = f"+{words.count(outcome.rows_inserted)} −{words.count(outcome.rows_deleted)} rows"
    took = words.milliseconds(outcome.milliseconds)
    return f"Refreshed {outcome.name}: {outcome.action.value}, {changed}, {took} ({outcome.reason})."


def _check(dsn: str, name: str | None) -> None:
    """Find what is wrong with address and name before anything slow begins."""
    with opened(dsn) as connection:
        if name is not None:
            check_known(connection, name)


@contextmanager
def engine_for(settings: Settings, step: str, loading: str | None = None) -> Iterator[Engine]:
    """An engine for one command, while the terminal shows what it does."""
    with Waiting(step, settings.dsn, loading) as waiting:
        from pgtrickle.commands.engine import build_engine

        def start() -> Spark:
            from pgtrickle.pipeline.session import open_spark

            waiting.step("Starting Spark")
            spark = open_spark(settings.spark_master)
            waiting.step(step)
            return spark

        engine = build_engine(settings, start)
        try:
            yield engine
        finally:
            engine.close()
