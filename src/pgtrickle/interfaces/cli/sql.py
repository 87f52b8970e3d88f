"""The command `sql`: CREATE, ALTER, DROP and REFRESH STREAM TABLE."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from pgtrickle.commands.serving import refresh_served
from pgtrickle.interfaces.cli.command_engine import open_engine
from pgtrickle.interfaces.cli.options import Dsn, Json, Master, MaxErrors, PathOption
from pgtrickle.interfaces.cli.printing import print_json_line, say
from pgtrickle.interfaces.cli.refresh import outcome_sentence
from pgtrickle.interfaces.cli.text_files import read_text
from pgtrickle.interfaces.ddl.execute import execute
from pgtrickle.interfaces.ddl.parser import parse
from pgtrickle.model.settings import SparkPath, read_settings

if TYPE_CHECKING:
    from pgtrickle.refresh.engine import Engine

Statements = Annotated[
    str | None,
    Argument(
        show_default=False,
        metavar="STATEMENTS",
        help="For example: CREATE STREAM TABLE name WITH (schedule = '1s') AS select …. "
        "Separate several with semicolons.",
    ),
]
File = Annotated[
    str | None,
    Option(
        "--file",
        "-f",
        show_default=False,
        metavar="FILE",
        help="A file with the statements; - reads standard input.",
    ),
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
    """Run CREATE, ALTER, DROP or REFRESH STREAM TABLE statements.

    A running sidecar does the REFRESH. Without one, this command starts its own Spark; the Spark options
    apply only then.
    """
    if (statements is None) == (file is None):
        raise BadParameter("give either the statements or --file")
    text = statements if statements is not None else read_text(file or "-")
    settings = read_settings(os.environ, dsn=dsn, spark_master=spark_master, path=path)
    with ExitStack() as stack:
        engines: list[Engine] = []

        def refresh(name: str) -> str:
            if (outcome := refresh_served(dsn, name)) is not None:
                return outcome_sentence(outcome)
            from pgtrickle.commands import refresh as command

            if not engines:
                engines.append(stack.enter_context(open_engine(settings, "Refreshing")))
            return outcome_sentence(command.refresh(engines[0], name, max_consecutive_errors))

        _execute_and_print(dsn, text, refresh, is_json=json)


def _execute_and_print(dsn: str, text: str, refresh: Callable[[str], str], *, is_json: bool) -> None:
    for result in execute(dsn, parse(text), refresh):
        if is_json:
            print_json_line({"statement": result.statement, "name": result.name, "done": result.sentence})
        else:
            say([result.sentence])
