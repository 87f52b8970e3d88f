"""The commands of `pgtrickle`, in the order in which users meet them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Final, NoReturn

import typer

from pgtrickle import __version__
from pgtrickle.interfaces.cli import (
    alter,
    clear_caches,
    create,
    drain,
    drop,
    explain,
    gate,
    install,
    refresh,
    repair,
    resume,
    sql,
    status,
    verify,
)
from pgtrickle.interfaces.cli import run as run_command
from pgtrickle.interfaces.cli.error_reporting import CommandFailed, report_errors

COMMANDS: Final[tuple[tuple[str, Callable[..., None]], ...]] = (
    ("install", install.install),
    ("create", create.create),
    ("run", run_command.run),
    ("list", status.list_stream_tables),
    ("status", status.status),
    ("history", status.history),
    ("sidecars", status.sidecars),
    ("refresh", refresh.refresh),
    ("explain", explain.explain),
    ("verify", verify.verify),
    ("alter", alter.alter),
    ("sql", sql.sql),
    ("resume", resume.resume),
    ("repair", repair.repair),
    ("gate", gate.gate),
    ("ungate", gate.ungate),
    ("drain", drain.drain),
    ("undrain", drain.undrain),
    ("drop", drop.drop),
    ("clear-caches", clear_caches.clear_caches),
    ("uninstall", install.uninstall),
)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        with report_errors(is_debugging="--debug" in arguments):
            # typer returns the exit code that a command asked for
            code = _application()(args=list(arguments), prog_name="pgtrickle", standalone_mode=False)
            return int(code or 0)
    except CommandFailed as failure:
        return failure.exit_code


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


def _print_version(is_given: bool) -> None:
    if is_given:
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
    signal.signal(signal.SIGTERM, _exit)


def _exit(*_: object) -> NoReturn:
    # raise, so that the way out stops Spark and removes its files
    sys.exit(128 + signal.SIGTERM)
