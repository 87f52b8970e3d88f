"""Our own tables beside a stream table are made once, emptied without bloat and dropped without a trace."""

from __future__ import annotations

import psycopg

from pgtrickle.apply import create_query_staging, create_storage, empty_staging, staging_table
from tests.apply.stream import STATE, create_stream
from tests.apply.test_merged import GROUPS
from tests.apply.test_replaced import GROUPS as UNHASHABLE
from tests.apply.test_rows import BY_KEY
from tests.fixtures.databases import TRICKLE, Connect

OURS = "select relname::text, relpersistence::text from pg_class where relname ~ '_7$' union all \
    select proname::text, 'function' from pg_proc where proname ~ '_7$' order by 1"


def test_creating_again_and_dropping_again_is_harmless(connection: psycopg.Connection):
    for _ in range(2):
        create_storage(connection, STATE, UNHASHABLE)
        create_query_staging(connection, STATE, UNHASHABLE.outputs)
    assert connection.execute(OURS).fetchall() == [
        ("answer_7", "u"),
        ("hash_7", "function"),
        ("staging_7", "u"),
        ("state_7", "p"),
    ]
    for _ in range(2):
        connection.execute("select pgtrickle_internal.drop_state(%s)", (STATE,))
    assert connection.execute(OURS).fetchall() == []


def test_groups_are_found_through_the_index(connection: psycopg.Connection):
    create_stream(connection, GROUPS)
    connection.execute("set local enable_seqscan = off")
    plan = connection.execute(
        "explain select * from pgtrickle_state.state_7 where pgtrickle_state.hash_7(g) = 1"
    ).fetchall()
    assert any("state_7_key" in line for (line,) in plan)


def test_staging_is_emptied_to_the_last_page(connection: psycopg.Connection):
    stream = create_stream(connection, BY_KEY, staged=True)
    stream.change([(n, "x", "1", 1) for n in range(100)])
    empty_staging(connection, staging_table(STATE))
    assert stream.run("select pg_relation_size('pgtrickle_state.staging_7')") == [(0,)]


def test_staging_that_is_still_written_is_left_alone(connection: psycopg.Connection, connect: Connect):
    stream = create_stream(connection, BY_KEY)
    connection.commit()
    straggler = connect(TRICKLE)
    straggler.execute("insert into pgtrickle_state.staging_7 (run) values (1)")
    empty_staging(connection, staging_table(STATE))
    straggler.commit()
    assert stream.run("select run from pgtrickle_state.staging_7") == [(1,)]
