"""Refusing what would be too wide for the statements that apply it.

PostgreSQL allows 1,664 entries in a select list, 1,600 columns in a table, and 100 arguments of a function.
A statement that applies changes has a row before and after in one list, and joins groups with their state.
"""

from __future__ import annotations

from typing import Final, assert_never

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.program import FirstRows, MergedGroups, ReplacedGroups, RowsTarget, Target

MAX_ENTRIES: Final = 1664
MAX_COLUMNS: Final = 1600
MAX_ARGUMENTS: Final = 100
_OWN: Final = 10
"""Room for entries of our own: weights, counts, places, hashes."""


def require_room(target: Target) -> None:
    """Refuse a target whose statements or tables would have too many columns."""
    columns = len(target.outputs)
    if _entries(target) + _OWN > MAX_ENTRIES or _stored_columns(target) + _OWN > MAX_COLUMNS:
        raise UnsupportedQuery(
            f"the query has {columns} columns, too many for PostgreSQL to apply changes of in one statement",
            hint="use the mode AUTO or FULL, or select fewer columns",
        )
    if isinstance(target, MergedGroups | ReplacedGroups) and len(target.keys) > MAX_ARGUMENTS:
        raise UnsupportedQuery(
            f"the query groups by {len(target.keys)} columns; the limit is {MAX_ARGUMENTS}",
            hint="use the mode AUTO or FULL, or group by fewer columns",
        )


def _entries(target: Target) -> int:
    """The most entries of a select list of the statements that apply a change."""
    # where there is a key, a row that leaves and the one that comes stand side by side
    rows = len(target.outputs) * (1 if target.key is None else 2)
    match target:
        case RowsTarget():
            return max(rows, len(target.fields))
        case FirstRows():
            return max(rows, len(target.fields), len(target.outputs) + len(target.hidden))
        case MergedGroups():
            hidden = len(target.outputs) + len(target.hidden)
            return max(rows, hidden, 2 * len(target.keys) + 3 * len(target.slots))
        case ReplacedGroups():
            return max(rows, 3 * len(target.keys) + 2 * len(target.values))
        case _:
            assert_never(target)


def _stored_columns(target: Target) -> int:
    """The most columns of the tables that are kept beside a stream table."""
    match target:
        case RowsTarget():
            return len(target.fields)
        case FirstRows():
            return max(len(target.fields), len(target.outputs) + len(target.hidden))
        case MergedGroups():
            return len(target.keys) + 2 * len(target.slots)
        case ReplacedGroups():
            return len(target.keys) + len(target.values)
        case _:
            assert_never(target)
