"""Stream tables whose changes are kept, and readers that add the changes up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import psycopg
import pytest

from pgtrickle.model.changes import Change, ChangeKind


def added_up(changes: Iterable[Change], content: Counter[str] | None = None) -> Counter[str]:
    """The content that a reader has after these changes, by the exact text of each row."""
    found = Counter(content or {})
    for change in changes:
        assert change.change is not ChangeKind.RESET, change.reason
        assert change.row_text is not None
        found[change.row_text] += change.count if change.change is ChangeKind.INSERT else -change.count
        assert found[change.row_text] >= 0, f"{change.row_text} was deleted before it was inserted"
    return +found


def content_of(connection: psycopg.Connection, name: str) -> Counter[str]:
    """The rows of a table as the exact texts of records."""
    return Counter(row for (row,) in connection.execute(f"select t::text from only {name} t"))


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, region text, amount numeric(10,2))",
        rows=[(1, "north", 10), (2, "south", 5), (3, "south", 5)],
    )
