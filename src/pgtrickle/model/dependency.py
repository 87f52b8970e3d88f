"""The kinds of objects that a stream table depends on."""

from __future__ import annotations

from enum import Enum


class DependencyKind(Enum):
    """The kind of a dependency."""

    TABLE = "table"
    STREAM_TABLE = "stream_table"
    MATERIALIZED_VIEW = "materialized_view"
    FOREIGN_TABLE = "foreign_table"
    ATTACHED_TABLE = "attached_table"
    VIEW = "view"
    FUNCTION = "function"
