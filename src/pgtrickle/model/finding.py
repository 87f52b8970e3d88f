"""What `pgtrickle doctor` found: one statement about one thing, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pgtrickle.model.records import Record


class Severity(Enum):
    """OK was checked and is right. WARN works, with a risk or a loss. ERROR stops something.

    UNCHECKED could not be checked from here, and says why.
    """

    OK = "OK"
    WARN = "WARN"
    ERROR = "ERROR"
    UNCHECKED = "UNCHECKED"


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Record):
    """The result of one check. `remedy` says what to do, as a statement or a command where there is one."""

    check: str
    severity: Severity
    message: str
    remedy: str | None = None


def ok(check: str, message: str) -> Finding:
    """Checked, and right."""
    return Finding(check, Severity.OK, message)


def warning(check: str, message: str, remedy: str) -> Finding:
    """It works, with a risk or a loss."""
    return Finding(check, Severity.WARN, message, remedy)


def failure(check: str, message: str, remedy: str) -> Finding:
    """Something does not work."""
    return Finding(check, Severity.ERROR, message, remedy)


def unchecked(check: str, message: str, remedy: str | None = None) -> Finding:
    """It could not be checked."""
    return Finding(check, Severity.UNCHECKED, message, remedy)
