"""What kinds of things a stream table relies on."""

from __future__ import annotations

from enum import Enum


class DependencyKind(Enum):
    """The kind of one dependency of a stream table."""

    TABLE = "table"
    STREAM_TABLE = "stream_table"
    MATERIALIZED_VIEW = "materialized_view"
    FOREIGN_TABLE = "foreign_table"
    VIEW = "view"
    FUNCTION = "function"
