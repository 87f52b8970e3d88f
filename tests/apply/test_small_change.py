"""Small changes: several are written in one round trip, by statements that are composed once."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from pgtrickle.apply import Applied
from pgtrickle.apply.small_change import SmallChange, _statement, small_change, write_small_changes
from pgtrickle.model.errors import Diverged
from tests.apply.stream import Stream, create_stream
from tests.apply.test_rows import BY_KEY


def change_of(stream: Stream, *rows: tuple[object, ...]) -> SmallChange:
    change = small_change(stream.destination, stream.given(rows))
    assert change is not None
    return change


def test_several_changes_are_written_together(connection: psycopg.Connection):
    first, second = create_stream(connection, BY_KEY, "first"), create_stream(connection, BY_KEY, "second")
    changes = [
        change_of(first, (1, "a", "1.5", 1), (2, 'b"\\', "2.5", 1)),
        change_of(second),
        change_of(second, (3, None, "3.5", 1)),
    ]
    assert write_small_changes(connection, changes) == [Applied(2, 0), Applied(0, 0), Applied(1, 0)]
    changes = [
        change_of(first, (1, "a", "1.5", -1), (1, "c", "1.5", 1)),
        change_of(second, (3, None, "3.5", -1)),
    ]
    assert write_small_changes(connection, changes) == [Applied(1, 1), Applied(0, 1)]
    assert first.rows() == Counter(["(1,c,1.5)", '(2,"b""\\\\",2.5)'])
    assert second.rows() == Counter()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_change_that_does_not_fit_is_noticed_among_others(connection: psycopg.Connection, position: int):
    stream = create_stream(connection, BY_KEY)
    changes = [change_of(stream, (n, "a", "1.5", 1)) for n in range(2)]
    changes.insert(position, change_of(stream, (9, "nobody", "1.5", -1)))
    with pytest.raises(Diverged, match="nobody"):
        write_small_changes(connection, changes)


def test_an_error_of_the_database_among_others_is_raised(connection: psycopg.Connection):
    stream = create_stream(connection, BY_KEY)
    stream.run("alter table streams.stream add check (id < 5)")
    changes = [change_of(stream, (n, "a", "1.5", 1)) for n in (1, 9, 2)]
    with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
        write_small_changes(connection, changes)
    assert stream.rows() == Counter()


def test_the_statement_for_a_table_is_composed_once(connection: psycopg.Connection):
    stream = create_stream(connection, BY_KEY, "composed_once")
    before = _statement.cache_info()
    statements = {change_of(stream, (n, "a", "1.5", 1)).statement for n in range(3)}
    after = _statement.cache_info()
    assert len(statements) == 1
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)


def test_what_needs_more_than_a_statement_is_no_small_change(connection: psycopg.Connection):
    stream = create_stream(connection, BY_KEY, staged=True)
    assert small_change(stream.destination, stream.given([(1, "a", "1.5", 1)])) is None
