"""Values as JSON types."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Records


def json_value(value: Any) -> Any:
    """The value as JSON types."""
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
        case _ if dataclasses.is_dataclass(value):
            return {field.name: json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value
