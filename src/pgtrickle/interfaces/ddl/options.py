"""The options in WITH (…) and SET (…), read from the table of options."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, assert_never

from pgtrickle.interfaces.ddl.statements import Value
from pgtrickle.model.errors import BadSchedule, BadStatement
from pgtrickle.model.options import ON_ALTER, ON_CREATE, Form, TableOption
from pgtrickle.scheduler.policy.schedule import parse_schedule

_YES: Final = frozenset({"true", "on", "yes", "1"})
_NO: Final = frozenset({"false", "off", "no", "0"})

CREATE: Final[Mapping[str, TableOption]] = {option.name: option for option in ON_CREATE}
ALTER: Final[Mapping[str, TableOption]] = {option.name: option for option in ON_ALTER}


def known_option(allowed: Mapping[str, TableOption], name: str, place: str) -> TableOption:
    """The option of that name; raise if there is none."""
    if name not in allowed:
        near = get_close_matches(name, allowed, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the options are {', '.join(allowed)}"
        raise BadStatement(f"{place}: there is no option {name}", hint=hint)
    return allowed[name]


def read_value(option: TableOption, given: str | None, place: str) -> Value:
    """The value of an option from its text, None for null; raise if the option does not take it."""
    try:
        return _read(option, given)
    except ValueError as wrong:
        shown = "null" if given is None else repr(given)
        raise BadStatement(f"{place}: {shown} is not a value of {option.name}", hint=f"{wrong}") from None


def _read(option: TableOption, given: str | None) -> Value:
    match option.form:
        case Form.BOOLEAN:
            return _boolean(given)
        case Form.CHOICE:
            return _choice(option.choices, given)
        case Form.SCHEDULE:
            return _schedule(given)
        case Form.TIMEOUT:
            # PostgreSQL parses it
            return "default" if given is None else given
        case Form.KEEPING:
            return "off" if given is None else given
        case _:
            assert_never(option.form)


def _boolean(given: str | None) -> bool:
    if given is None or given.lower() not in _YES | _NO:
        raise ValueError("use true or false")
    return given.lower() in _YES


def _choice(choices: tuple[str, ...], given: str | None) -> str:
    for choice in choices:
        if given is not None and given.lower() == choice.lower():
            return choice
    raise ValueError("use " + ", ".join(choices[:-1]) + " or " + choices[-1])


def _schedule(given: str | None) -> str:
    try:
        parse_schedule(given)
    except BadSchedule as bad:
        raise ValueError(bad.hint) from None
    return "manual" if given is None else given
