"""Values as JSON types."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Final

from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Records

_PLAIN: Final = frozenset({type(None), str, int, float, bool})


def json_value(value: Any) -> Any:
    """The value as JSON types."""
    kind: Any = type(value)
    # most values are one of these
    if kind in _PLAIN:
        return value
    match value:
        case RelationName():
            return str(value)
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case Decimal():
            # a program may read it as a double
            return float(value) if Decimal(repr(float(value))) == value else str(value)
        case dict():
            return {key: json_value(part) for key, part in value.items()}
        case list() | tuple() | Records():
            return [json_value(part) for part in value]
        case _ if names := _names(kind):
            return {name: json_value(getattr(value, name)) for name in names}
        case _:
            return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass; none for another class."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
