"""Messages of pgoutput, written by hand as its documentation describes them."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.capture.wal.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Note,
    Relation,
    RelationColumn,
    Truncate,
    Unchanged,
    UnknownMessage,
    Update,
    Value,
    full_xid,
    parse,
)


def written(*values: Value) -> bytes:
    """A row as pgoutput writes it."""
    parts = [pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is Unchanged.TOAST:
            parts.append(b"u")
        else:
            assert isinstance(value, bytes)
            parts.append(b"t" + pack(">I", len(value)) + value)
    return b"".join(parts)


def test_a_transaction_has_a_begin_and_a_commit() -> None:
    assert parse(b"B" + pack(">QqI", 1 << 33, 5_000_000, 77)) == Begin(1 << 33, 5_000_000, 77)
    assert parse(b"C" + pack(">BQQq", 0, 100, 148, 5_000_000)) == Commit(100, 148)


def test_a_relation_has_columns_and_a_key() -> None:
    columns = b"\1id\0" + pack(">Ii", 23, -1) + b"\0a name\0" + pack(">Ii", 25, 7)
    message = b"R" + pack(">I", 16384) + b"public\0orders\0" + b"d" + pack(">H", 2) + columns
    assert parse(message) == Relation(
        16384, (RelationColumn(b"id", 23, True), RelationColumn(b"a name", 25, False))
    )


def test_rows_have_texts_nulls_and_unchanged_values() -> None:
    relation = pack(">I", 9)
    row = written(b"1", None, Unchanged.TOAST, b"")
    assert parse(b"I" + relation + b"N" + row) == Insert(9, (b"1", None, Unchanged.TOAST, b""))
    assert parse(b"D" + relation + b"K" + written(b"1", None)) == Delete(9, (b"1", None))
    assert parse(b"D" + relation + b"O" + written(b"1", b"2")) == Delete(9, (b"1", b"2"))


@pytest.mark.parametrize("kind", [b"K", b"O"])
def test_an_update_has_the_old_row_or_its_key(kind: bytes) -> None:
    relation = pack(">I", 9)
    message = b"U" + relation + kind + written(b"1", None) + b"N" + written(b"2", b"x")
    assert parse(message) == Update(9, (b"1", None), (b"2", b"x"))
    assert parse(b"U" + relation + b"N" + written(b"2", b"x")) == Update(9, None, (b"2", b"x"))


def test_several_relations_are_truncated_at_once() -> None:
    assert parse(b"T" + pack(">IBII", 2, 0, 5, 6)) == Truncate((5, 6))


def test_messages_without_changes_are_skipped() -> None:
    assert [parse(kind + b"\0" * 20) for kind in (b"Y", b"O")] == [None, None]
    assert parse(b"M\1" + b"\0" * 8 + b"pgtrickle\0\0\0\0\5store") == Note(b"pgtrickle", b"store")


def test_an_unknown_message_is_an_error() -> None:
    with pytest.raises(UnknownMessage):
        parse(b"S" + b"\0" * 8)
    with pytest.raises(UnknownMessage):
        parse(b"I" + pack(">I", 9) + b"N" + pack(">H", 1) + b"b")


@given(st.lists(st.one_of(st.none(), st.just(Unchanged.TOAST), st.binary()), max_size=20))
def test_any_row_is_read_back(values: list[Value]) -> None:
    assert parse(b"I" + pack(">I", 1) + b"N" + written(*values)) == Insert(1, tuple(values))


@given(st.integers(1 << 31, 1 << 60), st.integers(-(1 << 20), (1 << 31) - 1))
def test_a_transaction_id_gets_its_epoch_back(next_xid: int, age: int) -> None:
    assert full_xid((next_xid - age) & 0xFFFFFFFF, next_xid) == next_xid - age
