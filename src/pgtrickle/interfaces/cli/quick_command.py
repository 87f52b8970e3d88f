"""Commands that start quickly: values that need no conversion do not import a library for it.

Typer imports pydantic to convert even a text to a text, which takes a fifth of the time of a short command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup


class QuickCommand(TyperCommand):
    """One command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, with `--help`."""
        return [_quick(parameter) for parameter in super().get_params(ctx)]


class QuickGroup(TyperGroup):
    """The command that all others belong to."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, with `--help`."""
        return [_quick(parameter) for parameter in super().get_params(ctx)]


def _quick(parameter: Any) -> Any:
    convert = getattr(parameter, "get_runtime_param", None)
    is_list = parameter.nargs != 1 or getattr(parameter, "multiple", False)
    # lists keep Typer's conversion, and so does everything if Typer has renamed it
    if convert is not None and not is_list and not isinstance(convert, _Conversion):
        parameter.get_runtime_param = _Conversion(parameter.type_descriptor.annotation, convert)
    return parameter


class _Conversion:
    """Passes on a value that has its type already, such as a default; leaves others to Typer."""

    def __init__(self, kind: object, convert: Callable[[], Any]) -> None:
        self._kind = kind
        self._convert = convert

    def __call__(self) -> _Conversion:
        return self

    def coerce(self, value: Any, **place: Any) -> Any:
        if value is None or type(value) is self._kind:
            return value
        return self._convert().coerce(value, **place)
