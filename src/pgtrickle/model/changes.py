"""Changes of the rows of a stream table: what refreshes changed, and what the next one would change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar

from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import Action


class ChangeKind(Enum):
    """What happened to a row; a reset means that the content was replaced."""

    INSERT = "insert"
    DELETE = "delete"
    RESET = "reset"


@dataclass(frozen=True, slots=True, repr=False)
class Change(Record):
    """A row that a refresh inserted into a stream table or deleted from it.

    `point` is its place in the feed, to continue from. Rows with the same `batch` come from one refresh, and
    `is_last` marks the last of them. `count` is how many equal rows there were. `data` is the row with values
    as in JSON, numbers that are no integers as `Decimal`. `row_text` is the row as PostgreSQL writes a
    record, with every value exact. A reset has neither, but a `reason`: read the stream table again.
    """

    table_columns: ClassVar = ("point", "change", "count", "data", "reason")

    point: int
    batch: int
    change: ChangeKind
    count: int
    data: Mapping[str, Any] | None
    row_text: str | None
    refreshed_at: datetime
    is_last: bool
    reason: str | None


@dataclass(frozen=True, slots=True, repr=False)
class PreviewedChange(Record):
    """A row that the next refresh would insert or delete, as in `Change`."""

    change: ChangeKind
    count: int
    data: Mapping[str, Any]
    row_text: str


@dataclass(frozen=True, slots=True, repr=False)
class Preview(Record):
    """What the next refresh of a stream table would do.

    `rows_inserted` and `rows_deleted` are exact. `changes` has the first of them; `is_truncated` says whether
    there are more.
    """

    table_columns: ClassVar = ("name", "action", "rows_inserted", "rows_deleted", "reason")

    name: RelationName
    action: Action
    reason: str
    rows_inserted: int
    rows_deleted: int
    changes: tuple[PreviewedChange, ...]
    is_truncated: bool
    milliseconds: float

    def first(self, most: int) -> Preview:
        """The same with at most this many of the changes."""
        return Preview(
            self.name,
            self.action,
            self.reason,
            self.rows_inserted,
            self.rows_deleted,
            self.changes[:most],
            self.is_truncated or len(self.changes) > most,
            self.milliseconds,
        )


def row_from_json(text: str) -> Mapping[str, Any]:
    """A row from the JSON that PostgreSQL wrote, without rounding its numbers."""
    found: Mapping[str, Any] = json.loads(text, parse_float=Decimal)
    return found


def row_to_json(value: object) -> str:
    """The JSON of a row, with its numbers as they were."""
    match value:
        case Decimal():
            return str(value)
        case Mapping():
            return (
                f"{{{', '.join(f'{json.dumps(key)}: {row_to_json(part)}' for key, part in value.items())}}}"
            )
        case list():
            return f"[{', '.join(map(row_to_json, value))}]"
        case _:
            return json.dumps(value)


def preview_to_json(found: Preview) -> dict[str, Any]:
    """A preview as JSON, in which a sidecar stores it; rows are texts, so that nothing is rounded."""
    return {
        "action": found.action.value,
        "reason": found.reason,
        "rows_inserted": found.rows_inserted,
        "rows_deleted": found.rows_deleted,
        "changes": [
            [change.change.value, change.count, row_to_json(change.data), change.row_text]
            for change in found.changes
        ],
        "is_truncated": found.is_truncated,
        "milliseconds": found.milliseconds,
    }


def preview_from_json(name: RelationName, value: Mapping[str, Any]) -> Preview:
    """The preview that was stored."""
    changes = (
        PreviewedChange(ChangeKind(change), count, row_from_json(data), text)
        for change, count, data, text in value["changes"]
    )
    return Preview(
        name,
        Action(value["action"]),
        value["reason"],
        value["rows_inserted"],
        value["rows_deleted"],
        tuple(changes),
        value["is_truncated"],
        value["milliseconds"],
    )
