"""Hints in the language of the interface that shows them.

A hint is written once, as SQL: `pgtrickle.drop_stream_table('sales', cascade => true)`. The command line
shows that step as `pgtrickle drop sales --cascade`, Python as `drop('sales', cascade=True)`.
Steps without a SQL function are written as commands in backticks, settings of a process as environment
variables.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from pgtrickle.model.options import BY_NAME


class Interface(Enum):
    """Where a hint is read."""

    SQL = "sql"
    CLI = "cli"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Step:
    """One step that a hint can advise, by its name in each interface; `function` is None if SQL lacks it."""

    function: str | None
    command: str
    method: str


STEPS: Final = (
    Step("create_stream_table", "create", "create"),
    Step("create_or_replace_stream_table", "create --or-replace", "create_or_replace"),
    Step("alter_stream_table", "alter", "alter"),
    Step("adopt_materialized_view", "adopt", "adopt"),
    Step("drop_stream_table", "drop", "drop"),
    Step("resume_stream_table", "resume", "resume"),
    Step("refresh_stream_table", "refresh", "refresh"),
    Step("repair_stream_table", "repair", "repair"),
    Step("repair", "repair", "repair"),
    Step("gate_source", "gate", "gate"),
    Step("ungate_source", "ungate", "ungate"),
    Step("drain", "drain", "drain"),
    Step("undrain", "undrain", "undrain"),
    Step("pgt_status", "status", "status"),
    Step("get_refresh_history", "history", "history"),
    Step("preview_refresh", "preview", "preview"),
    Step("changes", "changes", "changes"),
    Step("export_definition", "export", "export"),
    Step("stream_table_to_publication", "publish", "publish"),
    Step("drop_stream_table_publication", "unpublish", "unpublish"),
    Step("register_subscriber", "track", "track"),
    Step("unregister_subscriber", "untrack", "untrack"),
    Step("subscribe", "subscribe", "subscribe"),
    Step("unsubscribe", "unsubscribe", "unsubscribe"),
    Step(None, "publications", "publications"),
    Step(None, "subscriptions", "subscriptions"),
    Step(None, "apply", "apply"),
    Step(None, "install", "install"),
    Step(None, "uninstall", "uninstall"),
    Step(None, "run", "run"),
    Step(None, "verify", "verify"),
    Step(None, "explain", "explain"),
    Step(None, "validate", "validate"),
    Step(None, "advise", "advise"),
    Step(None, "top", "top"),
    Step(None, "doctor", "doctor"),
)

_BY_FUNCTION: Final = {step.function: step for step in STEPS if step.function}
_BY_COMMAND: Final = {step.command: step for step in STEPS}

_VALUE: Final = r"'(?:[^']|'')*'|\w+|…"
_REFERENCE: Final = re.compile(
    r"(?:select (?:\* from )?)?pgtrickle\.(?P<function>\w+)(?:\((?P<arguments>[^()]*)\))?"  # noqa: S608 (it matches SQL)
    r"|`pgtrickle (?P<command>[\w-]+)(?P<rest>[^`]*)`"
    rf"|(?P<option>\w+) => (?P<value>{_VALUE})"
    r"|\bPGTRICKLE_(?P<setting>[A-Z_]+)\b"
)
_FLAG: Final = re.compile(r"--([\w-]+) (\S+)")
_ARGUMENT: Final = re.compile(rf"\s*(?:(\w+)\s*=>\s*)?({_VALUE})\s*(?:,|$)")


def call(function: str, name: object) -> str:
    """A step for one stream table or source, as hints write it."""
    quoted = str(name).replace("'", "''")
    return f"select pgtrickle.{function}('{quoted}')"


def render(text: str, interface: Interface) -> str:
    """A text with each reference written in the language of the interface."""
    match interface:
        case Interface.SQL:
            return text
        case Interface.CLI:
            return _REFERENCE.sub(_on_command_line, text)
        case Interface.PYTHON:
            return _REFERENCE.sub(_in_python, text)
        case _:
            assert_never(interface)


def _on_command_line(found: re.Match[str]) -> str:
    if found["function"] is not None:
        step = _BY_FUNCTION.get(found["function"])
        return found[0] if step is None else f"`{_command(step, found['arguments'] or '')}`"
    if found["option"] is not None:
        return _flag(found["option"], found["value"])
    if found["setting"] is not None:
        option = _setting_option(found[0])
        return f"{option} ({found[0]})" if option else found[0]
    return found[0]


def _in_python(found: re.Match[str]) -> str:
    if found["function"] is not None:
        step = _BY_FUNCTION.get(found["function"])
        if step is None:
            return found[0]
        return f"`{step.method}({_arguments(found['arguments'] or '', _keyword)})`"
    if found["option"] is not None:
        return _keyword(found["option"], found["value"])
    if found["setting"] is not None and _setting_option(found[0]):
        return found["setting"].lower()
    if found["command"] in _BY_COMMAND:
        flags = ", ".join(f"{name.replace('-', '_')}={value}" for name, value in _FLAG.findall(found["rest"]))
        return f"`{_BY_COMMAND[found['command']].method}({flags})`"
    return found[0]


def _setting_option(variable: str) -> str | None:
    """The command-line option of a setting; None if only its environment variable sets it."""
    # settings raise errors, and errors have hints
    from pgtrickle.model.settings import SETTINGS

    return next((s.option for s in SETTINGS if s.variable == variable and s.is_option), None)


def _command(step: Step, arguments: str) -> str:
    given = _arguments(arguments, _flag, " ")
    return f"pgtrickle {step.command} {given}".rstrip()


def _arguments(text: str, written: Callable[[str, str], str], separator: str = ", ") -> str:
    return separator.join(written(name, value) for name, value in _ARGUMENT.findall(text))


def _flag(name: str, value: str) -> str:
    """An argument on the command line. A bare word stands for a value, and is written in capitals."""
    plain = value[1:-1].replace("''", "'") if value.startswith("'") else value
    if not name:
        return shlex.quote(plain) if value.startswith("'") else plain.upper()
    option = BY_NAME.get(name)
    flag = option.cli_flag if option else "--" + name.replace("_", "-")
    on, _, off = flag.partition("/")
    if plain in ("true", "false"):
        return on if plain == "true" else off
    return f"{on} {shlex.quote(plain) if plain != '…' else plain}"


def _keyword(name: str, value: str) -> str:
    written = {"true": "True", "false": "False", "null": "None"}.get(value, value)
    return f"{name}={written}" if name else written
