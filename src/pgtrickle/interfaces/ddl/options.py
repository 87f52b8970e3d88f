"""The options in WITH (…) and SET (…): which there are, and which values they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from pgtrickle.interfaces.ddl.statements import Value
from pgtrickle.model.errors import BadSchedule, BadStatement
from pgtrickle.scheduler.schedule import parse_schedule

Reading = Callable[[str | None], Value]
"""Reads what was written, None for null; raises ValueError with what would be right."""

_YES: Final = frozenset({"true", "on", "yes", "1"})
_NO: Final = frozenset({"false", "off", "no", "0"})


def _boolean(given: str | None) -> bool:
    if given is None or given.lower() not in _YES | _NO:
        raise ValueError("true or false")
    return given.lower() in _YES


def _one_of(*values: str) -> Reading:
    def read(given: str | None) -> str:
        for value in values:
            if given is not None and given.lower() == value.lower():
                return value
        raise ValueError(", ".join(values[:-1]) + " or " + values[-1])

    return read


def _schedule(given: str | None) -> str:
    try:
        parse_schedule(given)
    except BadSchedule as bad:
        raise ValueError(bad.hint) from None
    return "manual" if given is None else given


def _text(given: str | None) -> str:
    """Whatever PostgreSQL takes for it."""
    return "default" if given is None else given


_BOTH: Final[Mapping[str, Reading]] = {
    "schedule": _schedule,
    "refresh_mode": _one_of("AUTO", "DIFFERENTIAL", "FULL"),
    "diamond_consistency": _one_of("none", "atomic"),
    "diamond_schedule_policy": _one_of("fastest", "slowest"),
    "cdc_mode": _one_of("auto", "trigger", "wal"),
    "append_only": _boolean,
    "pooler_compatibility_mode": _boolean,
    "refresh_timeout": _text,
    "tier": _one_of("hot", "warm", "cold", "frozen"),
    "on_divergence": _one_of("repair", "stop"),
}
CREATE: Final[Mapping[str, Reading]] = {**_BOTH, "initialize": _boolean}
ALTER: Final[Mapping[str, Reading]] = {**_BOTH, "status": _one_of("ACTIVE", "SUSPENDED")}


def known_option(allowed: Mapping[str, Reading], name: str, place: str) -> Reading:
    """How the values of an option are read; refused if there is no such option."""
    if name not in allowed:
        near = get_close_matches(name, allowed, n=1)
        hint = f"do you mean {near[0]}?" if near else f"there are: {', '.join(allowed)}"
        raise BadStatement(f"{place}: there is no option {name} here", hint=hint)
    return allowed[name]


def read_value(reading: Reading, name: str, given: str | None, place: str) -> Value:
    """The value of an option; refused if it is not one."""
    try:
        return reading(given)
    except ValueError as wrong:
        shown = "null" if given is None else repr(given)
        raise BadStatement(f"{place}: {shown} is not a value of {name}", hint=f"{wrong}") from None
