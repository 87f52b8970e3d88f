"""Applying happens in the caller's transaction: others see all of it, or nothing, and never wait."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from pgtrickle.apply import Applied
from pgtrickle.apply.guard import open_guard
from tests.apply.stream import Stream, create_stream
from tests.apply.test_merged import GROUPS, as_first_load, follow
from tests.apply.test_rows import BY_KEY
from tests.fixtures.databases import TRICKLE, Connect

GUARD = """
create function streams.guard() returns trigger language plpgsql as $$
begin
    if current_setting('pgtrickle.applying', true) is distinct from 'on' then
        raise exception 'stream tables are written by pgtrickle alone';
    end if;
    return null;
end $$;
create trigger guard before insert or update or delete on streams.stream
    for each statement execute function streams.guard()
"""


@pytest.fixture
def stream(connection: psycopg.Connection) -> Stream:
    """Two committed rows."""
    stream = create_stream(connection, BY_KEY)
    stream.change([(1, "a", "1", 1), (2, "b", "2", 1)])
    connection.commit()
    return stream


def test_readers_see_the_old_rows_and_do_not_wait(stream: Stream, connect: Connect):
    reader = connect(TRICKLE)
    reader.execute("set lock_timeout = '1ms'")
    stream.change([(1, "a", "1", -1), (3, "c", "3", 1)])
    stream.replace([(4, "d", "4", 1)])
    found = reader.execute("select id from streams.stream order by id").fetchall()
    assert found == [(1,), (2,)]
    reader.rollback()
    stream.connection.commit()
    assert reader.execute("select id from streams.stream").fetchall() == [(4,)]


def test_rows_that_did_not_change_keep_their_version(stream: Stream):
    before = stream.versions()
    stream.change([(1, "a", "1", -1), (1, "z", "1", 1)])
    stream.connection.commit()
    stream.replace([(1, "z", "1", 1), (2, "b", "2", 1), (3, "c", "3", 1)])
    stream.connection.commit()
    assert stream.versions()["(2,b,2)"] == before["(2,b,2)"]


def test_nothing_is_kept_of_a_change_that_is_rolled_back(connection: psycopg.Connection):
    stream = create_stream(connection, GROUPS)
    before, after = Counter([("a", 1), ("a", 2)]), Counter([("a", 3), ("b", 1), ("b", 1)])
    stream.replace(as_first_load(GROUPS, before))
    connection.commit()
    kept = stream.rows()
    follow(stream, before, after)
    stream.replace([])
    connection.rollback()
    assert stream.rows() == kept
    assert follow(stream, before, after) == Applied(1, 1)


def test_the_guard_is_open_for_the_apply_alone(stream: Stream):
    stream.run(GUARD)
    assert stream.change([(1, "a", "1", -1), (3, "c", "3", 1)]) == Applied(1, 1)
    assert stream.replace([(5, "e", "5", 1)]) == Applied(1, 2)
    with pytest.raises(psycopg.errors.RaiseException, match="by pgtrickle alone"):
        stream.run("delete from streams.stream")


def test_settings_of_the_transaction_are_given_back(stream: Stream):
    settings = "select name, setting from pg_settings where name in ('enable_seqscan', 'jit', 'work_mem')"
    stream.run("set local work_mem = '5MB'")
    before = sorted(stream.run(settings))
    stream.change([(1, "a", "1", -1)])
    stream.replace([])
    assert sorted(stream.run(settings)) == before


def test_a_guard_for_many_rows_within_one_for_few_gives_back_both(stream: Stream):
    settings = "select name, setting from pg_settings where name in ('enable_seqscan', 'jit', 'work_mem')"
    stream.run("set local jit = on")
    before = sorted(stream.run(settings))
    with open_guard(stream.connection, few=True):
        for_few = sorted(stream.run(settings))
        with open_guard(stream.connection, few=False):
            assert sorted(stream.run(settings)) != for_few
        assert sorted(stream.run(settings)) == for_few != before
        assert stream.run("show pgtrickle.applying") == [("on",)]
    assert sorted(stream.run(settings)) == before
    assert stream.run("show pgtrickle.applying") == [("off",)]


def test_foreign_keys_to_a_stream_table_hold_through_updates(stream: Stream):
    stream.run("alter table streams.stream add primary key (id)")
    stream.run("create table streams.note (id int references streams.stream on delete cascade)")
    stream.run("insert into streams.note values (1), (2)")
    stream.change([(1, "a", "1", -1), (1, "z", "9", 1), (2, "b", "2", -1)])
    assert stream.run("table streams.note") == [(1,)]
