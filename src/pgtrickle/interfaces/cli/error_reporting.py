"""Reports errors: text for people, one line of JSON for programs. Both go to standard error."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from typer import Abort, BadParameter, Exit
from typer.exceptions import TyperException

from pgtrickle.interfaces.cli.printing import errors, print_error_json
from pgtrickle.model.errors import BadUsage, ConnectionFailed, PgTrickleError
from pgtrickle.model.hints import Interface
from pgtrickle.model.sentences import advice, sentence
from pgtrickle.model.settings import DSN, LOG_FORMAT, LogFormat


class CommandFailed(Exception):
    """A command failed and its error has been printed; `exit_code` is for the shell."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@contextmanager
def report_errors(*, is_debugging: bool, is_json: bool = False) -> Iterator[None]:
    """Print every error raised inside, and raise `CommandFailed` instead."""

    def report(error: PgTrickleError) -> CommandFailed:
        if is_debugging:
            traceback.print_exc()
        if is_json:
            print_error_json(error_values(error))
        else:
            _print_error(error)
        return CommandFailed(error.exit_code)

    try:
        yield
    except ConnectionFailed as error:
        if not os.environ.get(DSN.variable):
            error.hint = f"give the address with {DSN.variable}, or with libpq's PGHOST, PGPORT, PGUSER …"
        raise report(error) from None
    except PgTrickleError as error:
        raise report(error) from None
    except TyperException as error:
        raise report(BadUsage(_usage(error), hint=f"`{_help(error)}` shows the usage")) from None
    except Abort:
        _print("stopped", "nothing was done")
        raise CommandFailed(1) from None
    except KeyboardInterrupt:
        _print("stopped", "unfinished work was rolled back")
        raise CommandFailed(130) from None
    except Exit as error:
        raise CommandFailed(error.exit_code) from None
    except Exception as error:
        raise report(_translated(error)) from None


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors of this command line are for a program; `run` says that by the format of its log."""
    if "--json" in arguments:
        return True
    if "run" not in arguments:
        return False
    given = dict(pairwise(arguments)).get(LOG_FORMAT.option)
    for argument in arguments:
        option, _, value = argument.partition("=")
        given = value if option == LOG_FORMAT.option and value else given
    return (given or os.environ.get(LOG_FORMAT.variable, "")).lower() == LogFormat.JSON.value


def _translated(error: Exception) -> PgTrickleError:
    """The error of pgtrickle for any other: what PostgreSQL says, or that we have a defect."""
    # imported here, because the help and the version need no database
    from pgtrickle.postgres.connection import DatabaseError, to_error

    if isinstance(error, DatabaseError):
        return to_error(error)
    return PgTrickleError(
        f"unexpected {type(error).__name__}: {error}",
        hint="`pgtrickle --debug …` shows where it happened",
    )


def error_line(error: PgTrickleError) -> str:
    """The message, detail and hint of an error on one line."""
    text = sentence(error.message)
    if error.detail:
        text += f" {sentence(error.detail)}"
    hint = error.hint_for(Interface.CLI)
    return f"{text} Hint: {advice(hint)}" if hint else text


def error_values(error: PgTrickleError) -> dict[str, Any]:
    """An error as JSON. The keys are a stable interface."""
    return {
        "code": error.code,
        "sqlstate": error.reported_sqlstate,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint_for(Interface.CLI),
        "excerpt": error.excerpt,
    }


def _print_error(error: PgTrickleError) -> None:
    """One line for a log; several on a terminal, or if there is an excerpt of the query or a detail."""
    label = f"error {error.code}"
    console = errors()
    if not console.is_terminal and not error.excerpt and not error.detail:
        _print(label, error_line(error))
        return
    _print(label, sentence(error.message))
    if error.excerpt:
        console.print(error.excerpt, soft_wrap=True)
    if error.detail:
        _print("Detail", sentence(error.detail), style="bold")
    if hint := error.hint_for(Interface.CLI):
        _print("Hint", advice(hint), style="bold")


def _print(label: str, text: str, style: str = "bold red") -> None:
    # imported here, because most commands print no error
    from rich.text import Text

    console = errors()
    # a terminal would break long lines inside words; a program wants them whole
    console.print(Text.assemble((f"{label}: ", style), text), soft_wrap=not console.is_terminal)


def _usage(error: TyperException) -> str:
    """What is wrong with the command line; errors that we raise need no prefix."""
    if isinstance(error, BadParameter) and error.param is None:
        return error.message
    describe = getattr(error, "format_message", None)
    return str(describe() if describe else error)


def _help(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'pgtrickle'} --help"
