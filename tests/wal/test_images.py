"""Decoded rows become change rows of sources, or a marker where they cannot be followed."""

from __future__ import annotations

from pgtrickle.capture.wal.buffer_rows import escape
from pgtrickle.capture.wal.images import CapturedSource, ChangeRow, Column, Images
from pgtrickle.capture.wal.pgoutput import Delete, Insert, Relation, RelationColumn, Unchanged, Update

ORDERS, INT, TEXT = 100, 23, 25
COLUMNS = (Column(b"id", INT), Column(b"note", TEXT), Column(b"amount", INT))


def captured(*names: bytes, since: int = 0, until: int | None = None) -> CapturedSource:
    numbers = {column.name: number for number, column in enumerate(COLUMNS, start=1)}
    columns = tuple((numbers[name], name) for name in names)
    return CapturedSource(ORDERS, 0, columns, {ORDERS: COLUMNS}, since, until)


def described(*keys: bytes, columns: tuple[Column, ...] = COLUMNS) -> Relation:
    return Relation(ORDERS, tuple(RelationColumn(c.name, c.type, c.name in keys) for c in columns))


def images(source: CapturedSource, relation: Relation) -> Images:
    found = Images((source,))
    found.describe(relation)
    return found


def weights(rows: list[ChangeRow]) -> list[tuple[int, tuple[bytes | None, ...]]]:
    return [(row.weight, row.values) for row in rows]


FULL = described(b"id", b"note", b"amount")
KEYED = described(b"id")


def test_full_identity_gives_both_images() -> None:
    found = images(captured(b"id", b"amount"), FULL)
    old, new = (b"1", b"x", b"10"), (b"1", b"y", None)
    assert weights([*found.insert(Insert(ORDERS, new), 5)]) == [(1, (b"1", None))]
    assert weights([*found.delete(Delete(ORDERS, old), 5)]) == [(-1, (b"1", b"10"))]
    assert weights([*found.update(Update(ORDERS, old, new), 5)]) == [(-1, (b"1", b"10")), (1, (b"1", None))]


def test_an_unchanged_value_comes_from_the_old_row() -> None:
    found = images(captured(b"note"), FULL)
    update = Update(ORDERS, (b"1", b"long", b"10"), (b"1", Unchanged.TOAST, b"11"))
    assert weights([*found.update(update, 5)]) == [(-1, (b"long",)), (1, (b"long",))]


def test_a_key_is_enough_if_nothing_else_is_captured() -> None:
    found = images(captured(b"id"), KEYED)
    assert weights([*found.update(Update(ORDERS, None, (b"1", b"y", b"2")), 5)]) == []
    moved = Update(ORDERS, (b"1", None, None), (b"2", b"y", b"2"))
    assert weights([*found.update(moved, 5)]) == [(-1, (b"1",)), (1, (b"2",))]
    assert weights([*found.delete(Delete(ORDERS, (b"1", None, None)), 5)]) == [(-1, (b"1",))]


def test_a_key_is_not_enough_for_other_columns() -> None:
    found = images(captured(b"id", b"amount"), KEYED)
    assert weights([*found.insert(Insert(ORDERS, (b"1", b"y", b"2")), 5)]) == [(1, (b"1", b"2"))]
    assert weights([*found.update(Update(ORDERS, None, (b"1", b"y", b"2")), 5)]) == [(0, ())]
    assert weights([*found.delete(Delete(ORDERS, (b"1", None, None)), 5)]) == [(0, ())]


def test_other_columns_than_now_leave_a_marker() -> None:
    swapped = (COLUMNS[2], COLUMNS[1], COLUMNS[0])
    retyped = (COLUMNS[0], COLUMNS[1], Column(b"amount", TEXT))
    for columns in (swapped, retyped, COLUMNS[:2]):
        relation = described(b"id", b"note", b"amount", columns=columns)
        found = images(captured(b"id", b"amount"), relation)
        row = tuple(b"1" for _ in columns)
        assert weights([*found.insert(Insert(ORDERS, row), 5)]) == [(0, ())]
        assert weights([*found.update(Update(ORDERS, row, row), 5)]) == [(0, ())]


def test_only_transactions_between_the_positions_are_taken() -> None:
    found = images(captured(b"id", since=10, until=20), FULL)
    insert = Insert(ORDERS, (b"1", b"y", b"2"))
    taken = [lsn for lsn in (9, 10, 19, 20) if [*found.insert(insert, lsn)]]
    assert taken == [10, 19]
    assert [lsn for lsn in (9, 10, 19, 20) if [*found.truncate((ORDERS, 7), lsn)]] == [10, 19]
    assert [*found.truncate((7,), 15)] == []


def test_other_relations_are_ignored() -> None:
    found = images(captured(b"id"), FULL)
    assert [*found.insert(Insert(7, (b"1",)), 5)] == []


def test_values_are_escaped_for_copy() -> None:
    assert escape(b"plain") == b"plain"
    assert escape(b"a\tb\\c\nd\r") == b"a\\tb\\\\c\\nd\\r"
