"""The commands of `pgtrickle`, in the order in which people meet them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Final, NoReturn

import typer

from pgtrickle import __version__
from pgtrickle.interfaces.cli import (
    caching,
    controlling,
    defining,
    looking,
    refreshing,
    repairing,
    serving,
    telling,
)
from pgtrickle.interfaces.cli.failures import Failed, reported

COMMANDS: Final[tuple[tuple[str, Callable[..., None]], ...]] = (
    ("install", defining.install),
    ("create", defining.create),
    ("run", serving.run),
    ("list", looking.list_all),
    ("status", looking.status),
    ("history", looking.history),
    ("sidecars", looking.sidecars),
    ("refresh", refreshing.refresh),
    ("explain", refreshing.explain),
    ("verify", refreshing.verify),
    ("alter", defining.alter),
    ("sql", telling.sql),
    ("resume", defining.resume),
    ("repair", repairing.repair),
    ("gate", controlling.gate),
    ("ungate", controlling.ungate),
    ("drain", controlling.drain),
    ("undrain", controlling.undrain),
    ("drop", defining.drop),
    ("clear-caches", caching.clear_caches),
    ("uninstall", defining.uninstall),
)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code."""
    try:
        with reported(is_debugging="--debug" in arguments):
            # the parser gives back the code of an exit that a command asked for
            asked = _application()(args=list(arguments), prog_name="pgtrickle", standalone_mode=False)
            return int(asked or 0)
    except Failed as failed:
        return failed.exit_code


def _application() -> typer.Typer:
    application = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_root)
    for name, command in COMMANDS:
        application.command(name)(command)
    return application


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"pgtrickle {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Stream tables for PostgreSQL: query results that follow their sources, computed on Spark.

    Start with `pgtrickle install`, define with `pgtrickle create`, and keep `pgtrickle run` running.
    """
    signal.signal(signal.SIGTERM, _end)


def _end(*_: object) -> NoReturn:
    # as an exception, so that Spark and its files go on the way out
    sys.exit(128 + signal.SIGTERM)
