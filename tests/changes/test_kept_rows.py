"""Rows of a small source are kept at one frontier, and used only by a refresh that starts there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pgtrickle.changes import kept_rows
from pgtrickle.changes.kept_rows import MAX_ROWS, KeptRows, can_be_kept, matching_rows
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import StreamTableId
from tests.changes.reads import KEYS, lookup, rows_of, rows_read, table_source

TABLE, OTHER_TABLE = StreamTableId(1), StreamTableId(2)
SOURCE = table_source(100, id="integer", name="text")
OTHER_SOURCE = table_source(200, id="integer", name="text")
READ = rows_read(SOURCE, "id", "name")
FIRST, SECOND = Frontier(10, 10), Frontier(20, 20)
ROWS = pa.table({"id": pa.array([1, 2, None], pa.int32()), "name": ["a", "b", None]})


class Postgres:
    """Answers with rows, and counts how often it was asked."""

    def __init__(self, rows: pa.Table | None = ROWS) -> None:
        self.rows, self.asked = rows, 0

    def __call__(self, read, limit, most):
        self.asked += 1
        return self.rows


def test_rows_are_read_once_at_a_frontier():
    kept, postgres = KeptRows(), Postgres()
    assert kept.whole(TABLE, READ, FIRST, postgres) is kept.whole(TABLE, READ, FIRST, postgres)
    assert postgres.asked == 1


def test_a_refresh_that_starts_elsewhere_reads_again():
    kept, postgres = KeptRows(), Postgres()
    kept.whole(TABLE, READ, FIRST, postgres)
    kept.whole(TABLE, READ, SECOND, postgres)
    assert postgres.asked == 2
    assert len(kept) == 1


def test_rows_of_an_unchanged_source_move_with_the_refresh():
    kept, postgres = KeptRows(), Postgres()
    kept.whole(TABLE, READ, FIRST, postgres)
    kept.advance(TABLE, frozenset(), lambda source: (FIRST, SECOND))
    kept.whole(TABLE, READ, SECOND, postgres)
    assert postgres.asked == 1


@pytest.mark.parametrize(
    ("changed", "moved"),
    [
        pytest.param(frozenset({SOURCE.relation}), (FIRST, SECOND), id="the source has changed"),
        pytest.param(frozenset(), (SECOND, SECOND), id="the refresh did not start where the rows are"),
        pytest.param(frozenset(), (FIRST, None), id="the source was not followed"),
    ],
)
def test_rows_that_may_be_out_of_date_are_dropped(changed, moved):
    kept = KeptRows()
    kept.whole(TABLE, READ, FIRST, Postgres())
    kept.advance(TABLE, changed, lambda source: moved)
    assert len(kept) == 0


def test_the_rows_of_another_table_stay_where_they_are():
    kept, postgres = KeptRows(), Postgres()
    kept.whole(OTHER_TABLE, READ, FIRST, postgres)
    kept.advance(TABLE, frozenset({SOURCE.relation}), lambda source: (FIRST, SECOND))
    kept.forget(TABLE)
    kept.whole(OTHER_TABLE, READ, FIRST, postgres)
    assert postgres.asked == 1


@pytest.mark.parametrize(
    "rows", [None, pa.table({"id": pa.array(range(MAX_ROWS + 1), pa.int32())})], ids=["bytes", "rows"]
)
def test_a_source_that_is_too_large_is_asked_for_only_once(rows):
    kept, postgres = KeptRows(), Postgres(rows)
    assert kept.whole(TABLE, READ, FIRST, postgres) is None
    assert kept.whole(TABLE, READ, FIRST, postgres) is None
    assert postgres.asked == 1
    kept.forget(TABLE)
    kept.whole(TABLE, READ, FIRST, postgres)
    assert postgres.asked == 2


def test_the_least_recently_used_rows_are_dropped_first(monkeypatch):
    monkeypatch.setattr(kept_rows, "MAX_KEPT", 2)
    kept, postgres = KeptRows(), Postgres()
    reads = [rows_read(SOURCE, "id"), rows_read(SOURCE, "name"), rows_read(OTHER_SOURCE, "id")]
    for read in (reads[0], reads[1], reads[0], reads[2]):
        kept.whole(TABLE, read, FIRST, postgres)
    assert postgres.asked == 3
    kept.whole(TABLE, reads[0], FIRST, postgres)
    assert postgres.asked == 3
    kept.whole(TABLE, reads[1], FIRST, postgres)
    assert postgres.asked == 4


def test_the_memory_of_all_rows_is_limited(monkeypatch):
    monkeypatch.setattr(kept_rows, "MAX_KEPT_BYTES", 0)
    kept = KeptRows()
    assert kept.whole(TABLE, READ, FIRST, Postgres()) is ROWS
    assert len(kept) == 0


def keys(*values: int | None, type_name: pa.DataType | None = None) -> dict[str, pa.Table]:
    return {KEYS: pa.table({"id": pa.array(values, type_name or pa.int32())})}


@pytest.mark.parametrize(
    ("is_null_safe", "expected"), [(False, [(2, "b")]), (True, [(2, "b"), (None, None)])]
)
def test_a_null_key_finds_null_rows_only_in_a_null_safe_lookup(is_null_safe, expected):
    read = rows_read(SOURCE, "id", "name", lookups=(lookup(("id", "integer"), is_null_safe=is_null_safe),))
    assert can_be_kept(read, keys(2, None))
    assert rows_of(matching_rows(ROWS, read, keys(2, None))) == expected


def test_a_lookup_without_keys_finds_nothing_and_a_read_without_lookups_everything():
    by_id = rows_read(SOURCE, "id", "name", lookups=(lookup(("id", "integer")),))
    assert matching_rows(ROWS, by_id, keys()).num_rows == 0
    assert matching_rows(ROWS, READ, {}) is ROWS


def test_keys_that_arrow_compares_otherwise_are_left_to_postgres():
    by_id = rows_read(SOURCE, "id", "name", lookups=(lookup(("id", "integer")),))
    assert not can_be_kept(by_id, keys(1, type_name=pa.int64()))
    numeric = table_source(100, amount="double precision")
    by_amount = rows_read(numeric, "amount", lookups=(lookup(("amount", "double precision")),))
    assert not can_be_kept(by_amount, {KEYS: pa.table({"amount": pa.array([0.0])})})
