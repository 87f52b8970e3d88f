"""Every role gives the rows of a read their two weights, and what was subtracted is gone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pgtrickle.changes.inputs import BEFORE, NOW, weighted_input, without_repeats
from pgtrickle.plan.reads import AGAIN, WEIGHT, Input, Role
from tests.changes.reads import field, rows_of


def relation(*reads: tuple[str, Role]) -> Input:
    return Input("orders", (field("id", "integer"),), reads)


def rows(*weighted: tuple[int | None, int]) -> pa.Table:
    """Rows with one column and a weight."""
    return pa.table(
        {
            "id": pa.array([value for value, _ in weighted], pa.int32()),
            WEIGHT: pa.array([weight for _, weight in weighted], pa.int64()),
        }
    )


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (Role.CHANGE, [(1, 0, 2), (2, 3, 0)]),
        (Role.BOTH, [(1, 2, 2), (2, -3, -3)]),
        (Role.NOW, [(1, 0, 2), (2, 0, -3)]),
        (Role.BEFORE, [(1, 2, 0), (2, -3, 0)]),
    ],
)
def test_a_role_says_at_which_end_a_weight_counts(role, expected):
    assert rows_of(weighted_input(relation(("r", role)), {"r": rows((1, 2), (2, -3))})) == expected


def test_rows_without_a_weight_count_once_at_both_ends():
    found = weighted_input(relation(("r", Role.ONCE)), {"r": rows((1, 0), (2, 0)).drop_columns([WEIGHT])})
    assert rows_of(found) == [(1, 1, 1), (2, 1, 1)]


def test_a_row_that_the_window_inserted_is_subtracted_from_the_rows_that_stayed():
    """The rows now are 1, 2 and 3; the window inserted 3 and a second copy of 2."""
    reads = {
        "rows": rows((1, 1), (2, 1), (2, 1), (3, 1), (2, -1), (3, -1)),
        "changes": rows((2, 1), (3, 1), (None, -1)),
    }
    found = weighted_input(relation(("rows", Role.BOTH), ("changes", Role.CHANGE)), reads)
    assert rows_of(found) == [(1, 1, 1), (2, 1, 2), (3, 0, 1), (None, 1, 0)]


def test_rows_that_an_earlier_read_found_are_left_out():
    marked = rows((1, 1), (2, 1)).append_column(AGAIN, pa.array([True, False]))
    assert rows_of(without_repeats(marked)) == [(2, 1)]
    assert rows_of(weighted_input(relation(("r", Role.BOTH)), {"r": marked})) == [(2, 1, 1)]


def test_an_input_without_rows_still_has_its_columns():
    found = weighted_input(relation(("a", Role.BOTH), ("b", Role.CHANGE)), {"a": rows(), "b": rows()})
    assert found.column_names == ["id", BEFORE, NOW]
    assert found.num_rows == 0
