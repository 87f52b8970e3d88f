"""Generates docs/ERRORS.md from the classes of errors: their codes and their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgtrickle.model.errors import ERRORS, PgTrickleError

_HEAD: Final = """\
# Errors

This page is generated from the classes in `model/errors`: run `make reference` after a change.

Every error has a code, and each code has one SQLSTATE, one HTTP status and one exit code. The command line
prints the code before the message. With `--json` it prints an object with `code`, `sqlstate`, `message`,
`detail`, `hint` and `excerpt` to standard error; `sqlstate` is that of PostgreSQL if PostgreSQL refused the
command. SQL functions raise the SQLSTATE. In Python, `pgtrickle.model.errors` has a class for each code.

Hints name the next step in the language of the interface: as a command, as SQL, or as a call in Python.

## Exit codes

| exit code | meaning |
|---|---|
"""
_EXIT_CODES: Final[Mapping[int, str]] = {
    0: "The command succeeded, or was stopped as asked.",
    1: "Something failed: a refresh, Spark, or pgtrickle itself.",
    2: "The command was refused; correct it before you try again.",
    3: "The server, the installation, Java or Spark is not available.",
    4: "Something is locked or paused; try again later.",
    5: "A stream table does not hold the correct rows.",
    130: "You stopped the command with Ctrl-C.",
}
_GROUPS: Final[Mapping[str, str]] = {
    "C": "Connections and installation",
    "S": "Commands, names and options",
    "A": "Rights",
    "P": "Queries",
    "R": "Refreshes",
    "H": "HTTP",
    "J": "Java and Spark",
    "X": "Other",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the docstring of an error says."""

    meaning: str
    cause: str
    remedy: str


def explanation(error: type[PgTrickleError]) -> Explanation:
    """The meaning, cause and remedy of an error; raise if its docstring lacks one of them."""
    meaning, found, rest = (inspect.getdoc(error) or "").partition("\n\nCause: ")
    cause, also_found, remedy = rest.partition("\nRemedy: ")
    if not found or not also_found:
        raise ValueError(f"the docstring of {error.__name__} lacks its cause or its remedy")
    return Explanation(*(" ".join(part.split()) for part in (meaning, cause, remedy)))


def error_page() -> str:
    """The text of docs/ERRORS.md."""
    page = _HEAD + "".join(f"| {code} | {meaning} |\n" for code, meaning in _EXIT_CODES.items())
    for letter, title in _GROUPS.items():
        page += f"\n## {title}\n"
        page += "".join(_section(error) for error in ERRORS if error.code[4] == letter)
    return page


def _section(error: type[PgTrickleError]) -> str:
    said = explanation(error)
    return (
        f"\n### {error.code}: {error.__name__}\n\n"
        f"{said.meaning}\n\n"
        f"- Cause: {said.cause}\n"
        f"- Remedy: {said.remedy}\n"
        f"- SQLSTATE `{error.sqlstate}`, HTTP status {error.http_status}, exit code {error.exit_code}\n"
    )


if __name__ == "__main__":
    print(error_page(), end="")
