"""The commands of `pgtrickle`, in the order in which users meet them."""

from __future__ import annotations

import ast
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from pgtrickle import __version__
from pgtrickle.interfaces.cli import completion
from pgtrickle.interfaces.cli.error_reporting import CommandFailed, report_errors, wants_json
from pgtrickle.interfaces.cli.quick_command import QuickCommand, QuickGroup
from pgtrickle.model.settings import SETTINGS

COMMANDS: Final[tuple[tuple[str, str], ...]] = (
    ("install", "install.install"),
    ("validate", "validate.validate"),
    ("create", "create.create"),
    ("adopt", "adopt.adopt"),
    ("advise", "advise.advise"),
    ("run", "run.run"),
    ("list", "status.list_stream_tables"),
    ("status", "status.status"),
    ("top", "top.top"),
    ("history", "status.history"),
    ("sidecars", "status.sidecars"),
    ("alerts", "alerts.alerts"),
    ("doctor", "doctor.doctor"),
    ("refresh", "refresh.refresh"),
    ("explain", "explain.explain"),
    ("preview", "preview.preview"),
    ("changes", "changes.changes"),
    ("verify", "verify.verify"),
    ("alter", "alter.alter"),
    ("sql", "sql.sql"),
    ("export", "apply.export"),
    ("apply", "apply.apply"),
    ("resume", "resume.resume"),
    ("repair", "repair.repair"),
    ("publish", "publish.publish"),
    ("unpublish", "publish.unpublish"),
    ("publications", "publish.publications"),
    ("track", "publish.track"),
    ("untrack", "publish.untrack"),
    ("attach", "attach.attach"),
    ("detach", "attach.detach"),
    ("declare", "attach.declare"),
    ("attached", "attach.attached"),
    ("subscribe", "subscribe.subscribe"),
    ("unsubscribe", "subscribe.unsubscribe"),
    ("subscriptions", "subscribe.subscriptions"),
    ("gate", "gate.gate"),
    ("ungate", "gate.ungate"),
    ("drain", "drain.drain"),
    ("undrain", "drain.undrain"),
    ("drop", "drop.drop"),
    ("clear-caches", "clear_caches.clear_caches"),
    ("uninstall", "install.uninstall"),
)
"""Each command with its module and function. Only the modules that a command line needs are imported."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        with report_errors(is_debugging="--debug" in arguments, is_json=wants_json(arguments)):
            # typer returns the exit code that a command asked for
            given = list(arguments) or ["--help"]
            code = application(given)(args=given, prog_name="pgtrickle", standalone_mode=False)
            return int(code or 0)
    except CommandFailed as failure:
        return failure.exit_code


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command line with the command that the arguments name, or with all of them."""
    needed = _needed(arguments)
    made = typer.Typer(
        cls=QuickGroup,
        # costs time, and a single command has no use for it
        add_completion=len(needed) > 1 or bool(os.environ.get(completion.VARIABLE)),
        pretty_exceptions_enable=False,
        # the plain layout cuts no names at 80 columns
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    made.callback()(_root)
    for name, place in needed:
        if _is_overview(arguments):
            # the list of commands needs their first sentences, and none of their imports
            made.command(name, help=_described(place))(_nothing)
        else:
            epilog = _environment() if name == "run" else None
            made.command(name, cls=QuickCommand, epilog=epilog)(_command(place))
    return made


def _is_overview(arguments: Sequence[str]) -> bool:
    """Whether only the list of commands is shown or completed."""
    completed = completion.completed_command(os.environ)
    return (
        not completed if completed is not None else tuple(arguments) in (("--help",), ("-h",), ("--version",))
    )


def _described(place: str) -> str:
    """The docstring of a command, read from its file."""
    module, function = place.split(".")
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return ast.get_docstring(found) or ""


def _nothing() -> None:
    """Stands for a command that is only listed."""


def _environment() -> str:
    """The settings that only environment variables set, for the end of the help text of `run`."""
    only = [f"{setting.variable}: {setting.help}" for setting in SETTINGS if not setting.is_option]
    head = "These settings have an environment variable and no option:"
    return "\n\n".join((head, *only))


def _needed(arguments: Sequence[str]) -> Sequence[tuple[str, str]]:
    """The command that the arguments name; all of them for the help and for an unknown name."""
    completed = completion.completed_command(os.environ)
    words = arguments if completed is None else completed
    named = next((word for word in words if not word.startswith("-")), None)
    found = [command for command in COMMANDS if command[0] == named]
    if "--version" in arguments:
        return COMMANDS[:1]
    return found or COMMANDS


def _command(place: str) -> Callable[..., None]:
    module, function = place.split(".")
    command: Callable[..., None] = getattr(import_module(f"pgtrickle.interfaces.cli.{module}"), function)
    return command


def _print_version(is_given: bool) -> None:
    if is_given:
        print(f"pgtrickle {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print a traceback if a command fails.")] = False,
) -> None:
    """Stream tables for PostgreSQL: query results that stay up to date, computed on Spark.

    Start with `pgtrickle install`, define tables with `pgtrickle create`, and keep `pgtrickle run` running.
    `pgtrickle COMMAND --help` shows the options of a command and their environment variables.
    """
    signal.signal(signal.SIGTERM, _exit)


def _exit(*_: object) -> NoReturn:
    # raise, so that the way out stops Spark and removes its files
    sys.exit(128 + signal.SIGTERM)
