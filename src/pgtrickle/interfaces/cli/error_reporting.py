"""Reports errors on the terminal: one line that says what is wrong and what to do."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from typer import Abort, BadParameter, Exit
from typer.exceptions import TyperException

from pgtrickle.interfaces.cli.printing import errors
from pgtrickle.model.errors import ConnectionFailed, PgTrickleError
from pgtrickle.model.settings import DSN
from pgtrickle.postgres.connection import DatabaseError, to_refusal


class CommandFailed(Exception):
    """A command failed and its error has been printed; `exit_code` is for the shell."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@contextmanager
def report_errors(*, is_debugging: bool) -> Iterator[None]:
    """Turn every error raised inside into one printed line and a `CommandFailed`."""
    try:
        yield
    except ConnectionFailed as error:
        if not os.environ.get(DSN.variable):
            error.hint = (
                f"say where PostgreSQL is: --dsn, {DSN.variable}, or libpq's PGHOST, PGPORT, PGUSER …"
            )
        raise _report(error, is_debugging) from None
    except PgTrickleError as error:
        raise _report(error, is_debugging) from None
    except DatabaseError as error:
        raise _report(to_refusal(error), is_debugging) from None
    except TyperException as error:
        _print("error", f"{_sentence(_usage(error))}. Hint: {_help(error)}")
        raise CommandFailed(2) from None
    except Abort:
        _print("stopped", "nothing was done")
        raise CommandFailed(1) from None
    except KeyboardInterrupt:
        _print("stopped", "nothing that was unfinished has been kept")
        raise CommandFailed(130) from None
    except Exit as error:
        raise CommandFailed(error.exit_code) from None
    except Exception as error:
        if is_debugging:
            traceback.print_exc()
        what = _sentence(f"{type(error).__name__}: {error}")
        _print("error PGT-X000", f"this should not happen: {what}. Hint: pgtrickle --debug … shows where")
        raise CommandFailed(1) from None


def error_line(error: PgTrickleError) -> str:
    """The message and hint of an error on one line."""
    text = f"{_sentence(error.message)}."
    return f"{text} Hint: {_sentence(error.hint)}" if error.hint else text


def _report(error: PgTrickleError, is_debugging: bool) -> CommandFailed:
    if is_debugging:
        traceback.print_exc()
    _print(f"error {error.code}", error_line(error))
    return CommandFailed(error.exit_code)


def _print(label: str, text: str) -> None:
    console = errors()
    console.print(f"{label}:", style="bold red", end=" ")
    console.print(text, soft_wrap=True)


def _sentence(text: str) -> str:
    """The text on one line, without its final full stop."""
    return " ".join(text.split()).removesuffix(".")


def _usage(error: TyperException) -> str:
    """What is wrong with the command line; errors that we raise need no prefix."""
    if isinstance(error, BadParameter) and error.param is None:
        return error.message
    describe = getattr(error, "format_message", None)
    return str(describe() if describe else error)


def _help(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'pgtrickle'} --help"
