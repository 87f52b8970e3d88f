"""One setting: its name, default and limits, and how its value is read from text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from pgtrickle.model.errors import BadSetting

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
PREFIX: Final = "PGTRICKLE_"


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One setting. `read` parses its value from text, or raises ValueError with the expected form."""

    name: str
    default: T
    read: Callable[[str], T]
    help: str
    shown_default: str = ""
    """The default in words, if the value itself does not explain it."""
    least: float | None = None
    most: float | None = None
    is_option: bool = True
    """Whether the command line has an option for it. Every setting has an environment variable."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def option(self) -> str:
        """The command-line option that sets it."""
        return "--" + self.name.replace("_", "-")

    def value(self, text: str) -> T:
        """The value of a text; raise if it is not valid."""
        try:
            found = self.read(text)
        except ValueError as wrong:
            raise BadSetting(f"{self.name} cannot be {text!r}", hint=f"it must be {wrong}") from None
        if isinstance(found, (int, float)):
            self._check_range(found, text)
        return found

    def _check_range(self, number: float, text: str) -> None:
        if self.least is not None and number < self.least:
            raise BadSetting(f"{self.name} cannot be {text!r}", hint=f"it must be at least {self.least:g}")
        if self.most is not None and number > self.most:
            raise BadSetting(f"{self.name} cannot be {text!r}", hint=f"it must be at most {self.most:g}")


def whole_number(text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def number(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def one_of(choices: type[E]) -> Callable[[str], E]:
    """A parser for the values of an enumeration, in any case."""
    *others, last = (choice.value for choice in choices)

    def parse(text: str) -> E:
        try:
            return choices(text.lower())
        except ValueError:
            raise ValueError(f"{', '.join(others)} or {last}") from None

    return parse


def switch(text: str) -> bool:
    """Parse on or off."""
    known = {"on": True, "true": True, "1": True, "yes": True, "off": False, "false": False, "0": False}
    known["no"] = False
    try:
        return known[text.strip().lower()]
    except KeyError:
        raise ValueError("on or off") from None


_SIZE: Final = re.compile(r"\s*(\d+)\s*([kmgt]?)i?b?\s*\Z", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST_MEMORY: Final = 1 << 20


def memory_size(text: str) -> int | None:
    """Parse a size in bytes, such as 512MB."""
    parts = _SIZE.match(text)
    size = int(parts[1]) * _UNITS[parts[2].lower()] if parts else 0
    if size < _LEAST_MEMORY:
        raise ValueError("a size of at least 1 MB, such as 512MB or 2GB")
    return size
