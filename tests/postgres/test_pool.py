"""Connections are bounded, whoever opens them, and nobody waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import ConnectionFailed, NoConnectionFree, TooFewConnections
from pgtrickle.model.settings import Pooling
from pgtrickle.postgres.connection import connect
from pgtrickle.postgres.pool import FOR_TASKS, LEAST, Pool
from pgtrickle.refresh.execute.staging import divide_connections
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.poolers import new_pooler
from tests.fixtures.waiting import eventually


@pytest.fixture
def pool(dsn):
    pool = Pool(dsn, LEAST, patience=0.2, tasks_patience=0.2)
    yield pool
    pool.close()


def test_too_few_connections_are_refused_with_how_many_it_takes(dsn):
    with pytest.raises(TooFewConnections, match=f"at least {LEAST} connections"):
        Pool(dsn, LEAST - 1)


def test_who_waits_too_long_is_told_what_to_do(pool):
    with (
        pool.connections(LEAST - FOR_TASKS),
        pytest.raises(NoConnectionFree, match="raise max_connections"),
        pool.connection(),
    ):
        pass
    with pool.connection() as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_refresh_can_always_let_its_tasks_connect(pool):
    with pool.connections(LEAST - FOR_TASKS), pool.reserve_for_tasks(100) as places:
        assert places == FOR_TASKS
        with pytest.raises(NoConnectionFree), pool.reserve_for_tasks(100):
            pass


def test_tasks_leave_room_for_another_refresh(dsn):
    pool = Pool(dsn, 12)
    with pool.connections(2), pool.reserve_for_tasks(100) as places:
        assert places == 8
        with pool.connections(2):
            pass
    pool.close()


def test_many_who_want_several_never_lock_each_other_out_and_keep_the_limit(dsn, database):
    pool, limit = Pool(dsn, LEAST + 1), LEAST + 1
    count = (
        "select count(*) from pg_stat_activity where datname = current_database() and usename = 'trickle'"
        " and backend_type = 'client backend'"
    )
    seen, done = [], threading.Event()

    def work(number: int) -> None:
        for turn in range(10):
            with pool.connections(2) as (one, other):
                assert one is not other
                assert one.execute("select 1").fetchone() == other.execute("select 1").fetchone()
                if (number + turn) % 4 == 0:
                    with pool.reserve_for_tasks(3) as places:
                        opened = [connect(dsn) for _ in range(places)]
                        for connection in opened:
                            connection.close()

    def watch() -> None:
        with database.connect(SUPERUSER, autocommit=True) as admin:
            while not done.is_set():
                row = admin.execute(count).fetchone()
                assert row is not None
                seen.append(row[0])

    with ThreadPoolExecutor(9) as workers:
        watcher = workers.submit(watch)
        for worked in [workers.submit(work, number) for number in range(8)]:
            worked.result(60)
        done.set()
        watcher.result(10)
    pool.close()
    # a connection that was closed is seen until its process has ended
    assert max(seen) <= limit + FOR_TASKS
    assert sorted(seen)[len(seen) // 2] <= limit
    assert max(seen) > 2


def test_what_was_not_committed_is_rolled_back(pool, connection):
    with pool.connection() as one:
        one.execute("create table pgtrickle_state.kept (n int)")
    assert connection.execute("select to_regclass('pgtrickle_state.kept')").fetchone() == (None,)


def test_a_connection_that_ended_while_it_lay_idle_is_not_given_out(pool, admin):
    with pool.connections(2) as (one, other):
        idle = [one.info.backend_pid, other.info.backend_pid]
    admin.execute("select pg_terminate_backend(p) from unnest(%s::int[]) p", (idle,))
    living = "select count(*) from pg_stat_activity where pid = any (%s)"
    eventually(lambda: admin.execute(living, (idle,)).fetchone() == (0,))
    with pool.connection() as fresh:
        assert fresh.execute("select pg_backend_pid()").fetchone() != (idle[0],)


def test_after_a_renewal_no_old_connection_is_used(pool):
    with pool.connection() as one:
        pool.renew()
        old = one.info.backend_pid
    with pool.connection() as fresh:
        assert fresh.info.backend_pid != old


def test_a_failed_connection_gives_its_place_back(dsn):
    pool = Pool("postgresql://nobody@127.0.0.1:1/nowhere", LEAST, patience=0.2)
    for _ in range(2 * LEAST):
        with pytest.raises(ConnectionFailed), pool.connections(2):
            pass


def test_a_straight_way_is_told_from_one_through_a_pooler(database):
    straight = Pool(database.dsn(TRICKLE))
    assert not straight.is_pooled
    straight.close()
    with new_pooler(database.server, (TRICKLE, APP)) as pooler:
        through = Pool(pooler.dsn(database.name, TRICKLE))
        assert through.is_pooled
        through.close()


def test_what_is_known_of_the_way_is_not_asked():
    nowhere = "postgresql://nobody@127.0.0.1:1/nowhere"
    assert Pool(nowhere, pooling=Pooling.YES).is_pooled
    assert not Pool(nowhere, pooling=Pooling.NO).is_pooled


@given(
    places=st.integers(FOR_TASKS, 64),
    reads=st.dictionaries(st.text("abcdef", min_size=1), st.tuples(st.integers(1, 9), st.integers(1, 3))),
)
def test_readers_and_writers_together_never_exceed_their_places(places, reads):
    pieces = {name: count for name, (count, _) in reads.items()}
    scans = {name: count for name, (_, count) in reads.items()}
    found = divide_connections(places, pieces, scans)
    assert found.writers >= 1
    assert sum(found.readers[name] * scans[name] for name in found.readers) + found.writers <= places
    assert all(1 <= found.readers[name] <= pieces[name] for name in found.readers)
    assert found.readers or all(count > places - found.writers for count in scans.values())
