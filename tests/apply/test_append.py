"""Changes that only add rows are appended; whatever removes one is applied as always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.apply import Applied
from pgtrickle.apply.append import only_adds
from pgtrickle.apply.apply import apply_changes
from pgtrickle.model.errors import Diverged
from tests.apply.conftest import Streams
from tests.apply.stream import Stream, create_stream
from tests.apply.test_rows import BAG, BY_KEY, awkward_rows, law, stored_text


def appended(stream: Stream, rows: Sequence[tuple[object, ...]]) -> Applied:
    destination = replace(stream.destination, is_append_only=True)
    return apply_changes(stream.connection, destination, stream.given(rows))


@law
@given(
    before=st.lists(awkward_rows, max_size=4),
    after=st.lists(awkward_rows, max_size=4),
    copies=st.integers(1, 3),
)
def test_appending_gives_the_rows_that_writing_gives(streams: Streams, before, after, copies):
    with streams(BAG) as stream:
        appended(stream, [(*row, 1) for row in before])
        applied = appended(stream, [(*row, copies) for row in after])
        assert applied == Applied(len(after) * copies, 0)
        wanted = Counter(before) + Counter({row: count * copies for row, count in Counter(after).items()})
        assert stream.rows() == stored_text(stream, wanted)


@pytest.mark.parametrize("staged", [False, True])
def test_a_change_that_removes_a_row_is_applied_as_always(connection, staged):
    stream = create_stream(connection, BY_KEY, staged=staged)
    appended(stream, [(1, "a", "1.5", 1), (2, "b", "2.5", 1)])
    change = [(1, "a", "1.5", -1), (1, "c", "1.5", 1), (3, "d", "3.5", 1)]
    assert not only_adds(connection, BY_KEY, stream.given(change))
    assert appended(stream, change) == Applied(2, 1)
    assert stream.rows() == Counter(["(1,c,1.5)", "(2,b,2.5)", "(3,d,3.5)"])


def test_an_empty_change_appends_nothing(connection):
    stream = create_stream(connection, BY_KEY)
    assert appended(stream, []) == Applied(0, 0)


def test_a_trigger_that_suppresses_rows_is_noticed(connection):
    stream = create_stream(connection, BY_KEY)
    stream.run(
        "create function streams.drop_row() returns trigger language plpgsql as 'begin return null; end'"
    )
    stream.run(
        f"create trigger t before insert on {stream.name.sql} for each row"
        " execute function streams.drop_row()"
    )
    with pytest.raises(Diverged, match="not every row could be written"):
        appended(stream, [(1, "a", "1.5", 1)])
