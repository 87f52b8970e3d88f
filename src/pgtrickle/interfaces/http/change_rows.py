"""Changes of rows as the API shows them: each row a list of texts, in the order of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import groupby, islice
from typing import Any, Final

from pgtrickle.commands.changes import Since, change_point, changes
from pgtrickle.commands.rows import table_columns
from pgtrickle.commands.serving import preview_served
from pgtrickle.interfaces.http.table_row import time_text
from pgtrickle.model.changes import Change, ChangeKind, row_to_json
from pgtrickle.model.errors import NoSidecar
from pgtrickle.postgres.text_rows import LONGEST_VALUE

MOST_ROWS: Final = 1000


def preview_values(dsn: str, name: str, limit: int, seconds: float) -> dict[str, Any]:
    """What the next refresh would change, with at most `limit` rows of it."""
    found = preview_served(dsn, name, seconds)
    if found is None:
        raise NoSidecar("no sidecar serves this database", hint="start one with `pgtrickle run`")
    columns = table_columns(dsn, name)
    names = [column.name for column in columns]
    shown: dict[ChangeKind, list[list[str | None]]] = {ChangeKind.INSERT: [], ChangeKind.DELETE: []}
    for one in found.changes:
        rows = shown[one.change]
        rows += [cells(names, one.data)] * min(one.count, limit - len(rows))
    listed = len(shown[ChangeKind.INSERT]) + len(shown[ChangeKind.DELETE])
    return {
        "columns": [asdict(column) for column in columns],
        "inserted": shown[ChangeKind.INSERT],
        "deleted": shown[ChangeKind.DELETE],
        "rows_inserted": found.rows_inserted,
        "rows_deleted": found.rows_deleted,
        "is_truncated": found.is_truncated or listed < found.rows_inserted + found.rows_deleted,
        "strategy": found.action.value,
        "reason": found.reason,
        "ms": found.milliseconds,
    }


def change_values(dsn: str, name: str, since: Since, limit: int) -> dict[str, Any]:
    """The changes after a point, at most `limit` rows of them, by refresh."""
    columns = table_columns(dsn, name)
    start = change_point(dsn, name) if since == "now" else since
    with closing(changes(dsn, name, start)) as feed:  # type: ignore[type-var]
        found = list(islice(feed, limit))
    names = [column.name for column in columns]
    batches = [_batch(names, list(group)) for _, group in groupby(found, key=lambda change: change.batch)]
    return {
        "columns": [asdict(column) for column in columns],
        "changes": batches,
        "next": found[-1].point if found else start if start is not None else change_point(dsn, name),
    }


def _batch(names: Sequence[str], found: Sequence[Change]) -> dict[str, Any]:
    rows: dict[ChangeKind, list[list[str | None]]] = {kind: [] for kind in ChangeKind}
    for one in found:
        if one.data is not None:
            rows[one.change] += [cells(names, one.data)] * min(one.count, MOST_ROWS)
    return {
        "sequence": found[-1].point,
        "refresh_id": found[-1].batch,
        "at": time_text(found[-1].refreshed_at),
        "inserted": rows[ChangeKind.INSERT],
        "deleted": rows[ChangeKind.DELETE],
        "is_complete": found[-1].is_last,
        "reset": next((one.reason for one in found if one.change is ChangeKind.RESET), None),
    }


def cells(names: Sequence[str], data: Mapping[str, Any]) -> list[str | None]:
    """A row in the order of the columns. Long values are cut."""
    return [_cell(data.get(name)) for name in names]


def _cell(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else row_to_json(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
