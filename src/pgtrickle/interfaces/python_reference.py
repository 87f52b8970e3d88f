"""Generates docs/PYTHON.md from the docstrings of the Python interface."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import pgtrickle
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.records import Record

_HEAD: Final = """\
# Python reference

This page is generated from the docstrings: run `make reference` after a change. A test runs its examples, one
after the other, on a database with the table `orders(id, region, amount)` and the materialized view
`by_region`. They begin with

```pycon
>>> import threading
>>> import pgtrickle
```

Everything here is in the module `pgtrickle`. Commands have the same names and options as on the command
line. Write names of stream tables and sources as in SQL. Every command opens a connection of its own, so
several threads can share one `Trickle`. Only `refresh`, `explain`, `preview`, `verify`, `run` and
`run_in_background` need Spark, which starts in this process when it is first needed.

What PostgreSQL remarks about a new definition, for example that another session has locked a source, is
logged as a warning by the logger `pgtrickle`.
"""
_RESULTS: Final = """
## Results

Results are frozen values with the fields below. `repr` shows the most important fields on one line, `print`
all of them, a notebook shows a table, and `to_pandas()` returns a DataFrame. A method that returns several
results returns `Records`, which is a sequence and has the same abilities. Names of stream tables are
`RelationName` values; `str(name)` writes one as SQL does.
"""
_ERRORS: Final = """
## Errors

Every error is a `PgTrickleError` with the attributes `message`, `detail` and `hint` (or None), `code` and
`sqlstate`. [ERRORS.md](ERRORS.md) has the cause and the remedy of each.

```pycon
>>> try:
...     trickle.refresh("nothing")
... except pgtrickle.UnknownStreamTable as error:
...     print(error.code)
PGT-S002
```

| class | base class | code | SQLSTATE | meaning |
|---|---|---|---|---|
"""

TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "Connect": ("connect", "Trickle", "grants", "install"),
    "Come from materialized views": ("advise", "adoption_plan", "adopt"),
    "Create and load": ("validate", "create", "refresh"),
    "Watch": (
        "list",
        "list_all",
        "status",
        "top",
        "history",
        "timeline",
        "sidecars",
        "health",
        "alerts",
        "follow_alerts",
        "explain",
        "preview",
        "verify",
    ),
    "Follow changes": ("changes", "change_point"),
    "Pass changes on": (
        "publish",
        "publications",
        "track",
        "untrack",
        "unpublish",
        "subscribe",
        "subscriptions",
        "unsubscribe",
    ),
    "Read other databases": ("attach", "declare", "attached", "detach"),
    "Change and drop": (
        "alter",
        "create_or_replace",
        "create_if_not_exists",
        "bulk_create",
        "drop",
        "sql",
        "export",
        "apply",
    ),
    "Run the sidecar": ("run", "run_in_background", "BackgroundRun"),
    "Pause": ("gate", "ungate", "drain", "undrain"),
    "Get out of trouble": ("doctor", "resume", "repair", "clear_caches", "cache_stats"),
    "Leave": ("uninstall", "close"),
}
"""The headings of the page, in the order in which the examples run."""
_CLASSES: Final = {"BackgroundRun": ("is_running", "wait", "stop")}
_WIDEST: Final = 90


def python_page() -> str:
    """The text of docs/PYTHON.md."""
    text = _HEAD
    for topic, names in TOPICS.items():
        text += f"\n## {topic}\n" + "".join(map(_entry, names))
    results = _RESULTS + "".join(map(_record, exported(Record))) + _states()
    errors = sorted(exported(PgTrickleError), key=lambda error: (error.code, error.__name__))
    return text + results + _ERRORS + "".join(map(_error, errors))


def exported(kind: type[Any]) -> list[type[Any]]:
    """The exported subclasses of a class, in the order of their names."""
    values = (getattr(pgtrickle, name) for name in dir(pgtrickle))
    return [value for value in values if _is_strict_subclass(value, kind)]


def _entry(name: str) -> str:
    value = getattr(pgtrickle if name in pgtrickle.__all__ else pgtrickle.Trickle, name)
    if isinstance(value, type):
        members = "".join(_member(value, member) for member in _CLASSES.get(name, ()))
        return f"\n### {name}\n\n{_prose(value)}\n{members}"
    prefix = "pgtrickle" if name == "connect" else "trickle"
    return f"\n### {name}\n\n```python\n{prefix}.{name}{_signature(value)}\n```\n\n{_prose(value)}\n"


def _member(owner: type[Any], name: str) -> str:
    value = inspect.getattr_static(owner, name)
    call = name if isinstance(value, property) else name + _signature(value)
    return f"\n#### {owner.__name__}.{name}\n\n```python\n{call}\n```\n\n{_prose(value)}\n"


def _signature(function: Callable[..., Any]) -> str:
    """The parameters and the result of a function; one parameter on each line if they are many."""
    signature = inspect.signature(function)
    parameters = [_parameter(each) for each in signature.parameters.values() if each.name != "self"]
    kinds = [each.kind for each in signature.parameters.values() if each.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"({', '.join(parameters)}) -> {signature.return_annotation}"
    if len(line) <= _WIDEST:
        return line
    return "(\n    " + ",\n    ".join(parameters) + f",\n) -> {signature.return_annotation}"


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    has_default = parameter.default is not inspect.Parameter.empty
    default = f" = {parameter.default!r}" if has_default else ""
    return f"{parameter.name}: {parameter.annotation}{default}"


def _prose(value: object) -> str:
    """The docstring, with its examples in blocks of their own."""
    text = inspect.cleandoc(value.__doc__ or "")
    paragraphs = text.replace("docs/CONFIGURATION.md", "[CONFIGURATION.md](CONFIGURATION.md)").split("\n\n")
    return "\n\n".join(_block(part) if part.startswith(">>> ") else part for part in paragraphs)


def _block(example: str) -> str:
    return f"```pycon\n{example}\n```"


def _record(kind: type[Any]) -> str:
    rows = "".join(f"| `{field.name}` | {_cell(str(field.type))} |\n" for field in dataclasses.fields(kind))
    return f"\n### {kind.__name__}\n\n{_prose(kind)}\n\n| field | type |\n|---|---|\n{rows}"


def _states() -> str:
    rows = "".join(
        f"| `{kind.__name__}` | {', '.join(f'`{state.name}`' for state in kind)} | {_prose(kind)} |\n"
        for kind in exported(Enum)
    )
    return f"\n### States\n\n| class | values | meaning |\n|---|---|---|\n{rows}"


def _error(kind: type[PgTrickleError]) -> str:
    names = f"`{kind.__name__}` | `{kind.__bases__[0].__name__}`"
    meaning = _cell(" ".join(_prose(kind).partition("\n\n")[0].split()))
    return f"| {names} | {kind.code} | {kind.sqlstate} | {meaning} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _is_strict_subclass(value: object, kind: type[Any]) -> bool:
    return isinstance(value, type) and issubclass(value, kind) and value is not kind


if __name__ == "__main__":
    print(python_page(), end="")
