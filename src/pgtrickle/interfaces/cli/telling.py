"""The command that takes statements: CREATE, ALTER, DROP and REFRESH STREAM TABLE."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from pgtrickle.interfaces.cli.defining import text_in
from pgtrickle.interfaces.cli.options import Dsn, Json, Master, MaxErrors, PathOption
from pgtrickle.interfaces.cli.printing import print_json_line, say
from pgtrickle.interfaces.cli.refreshing import engine_for, sentence
from pgtrickle.interfaces.ddl.parsing import parse
from pgtrickle.interfaces.ddl.running import run
from pgtrickle.model.settings import SparkPath, read_settings

if TYPE_CHECKING:
    from pgtrickle.refresh.engine import Engine

Statements = Annotated[
    str | None,
    Argument(
        show_default=False,
        help="CREATE STREAM TABLE name WITH (schedule = '1s') AS select …, ALTER …, DROP …, REFRESH …; "
        "several with semicolons between them.",
    ),
]
File = Annotated[
    str | None,
    Option("--file", "-f", show_default=False, help="A file with the statements; - reads standard input."),
]


def sql(
    statements: Statements = None,
    file: File = None,
    spark_master: Master = "local[*]",
    path: PathOption = SparkPath.AUTO,
    max_consecutive_errors: MaxErrors = 3,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Run statements about stream tables, written like SQL."""
    if (statements is None) == (file is None):
        raise BadParameter("give the statements, or a file with --file, and not both")
    text = statements if statements is not None else text_in(file or "-")
    settings = read_settings(os.environ, dsn=dsn, spark_master=spark_master, path=path)
    with ExitStack() as stack:
        engines: list[Engine] = []

        def refresh(name: str) -> str:
            from pgtrickle.commands.refresh import refresh as refresh_with

            if not engines:
                engines.append(stack.enter_context(engine_for(settings, "Refreshing")))
            return sentence(refresh_with(engines[0], name, max_consecutive_errors))

        _tell(dsn, text, refresh, is_json=json)


def _tell(dsn: str, text: str, refresh: Callable[[str], str], *, is_json: bool) -> None:
    for done in run(dsn, parse(text), refresh):
        if is_json:
            print_json_line({"statement": done.statement, "name": done.name, "done": done.what})
        else:
            say([done.what])
