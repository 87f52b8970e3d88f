"""The broker reads a window once for all databases that follow it, and is never needed for the right rows."""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing

import psycopg
import pytest

from pgtrickle.capture.attached import broker as broker_module
from pgtrickle.capture.attached.broker import Broker, Unshared
from pgtrickle.capture.attached.databases import AttachedDatabases
from pgtrickle.model.errors import AttachedFailed, BrokerFull, Busy
from pgtrickle.postgres.pool import Pool
from tests.fixtures.databases import APP, TEMPLATE, TRICKLE, create_database, drop_database

pytestmark = pytest.mark.database

QUERY = "select id, name from crm.public.people"


class Reader:
    """A database that follows people, with a broker that it shares with the others."""

    def __init__(self, database, dsn: str, broker: Broker | None) -> None:
        self.database = database
        self.pool = Pool(database.dsn(), 5)
        self.attached = AttachedDatabases(self.pool, {"crm": dsn}.get, broker)
        self.local = database.connect(TRICKLE, autocommit=True)
        self.local.execute("select pgtrickle.attach_database('crm', 'crm')")
        self.local.execute("select pgtrickle.declare_source('crm', 'public', 'people')")
        self.follow()
        self.local.execute('grant select on pgtrickle_attached."crm.public.people" to app')
        with closing(database.connect(APP, autocommit=True)) as app:
            app.execute(
                "select pgtrickle.create_stream_table('copied', %s, refresh_mode => 'FULL')", (QUERY,)
            )
        self.follow()

    def follow(self):
        (database,) = self.attached.list()
        return self.attached.follow(database)

    def rows(self):
        (relation,) = self.local.execute("select source_relid from pgtrickle.pgt_attached_tables").fetchone()
        return sorted(
            self.local.execute(f"select id, name from pgtrickle_state.copy_of_{relation}").fetchall()
        )

    def close(self) -> None:
        self.attached.close()
        self.pool.close()
        self.local.close()


@pytest.fixture
def origin(server, templates, database_names):
    templates.ensure(server)
    database = create_database(server, next(database_names), TEMPLATE)
    with closing(database.connect(APP, autocommit=True)) as app:
        app.execute("create table people (id int primary key, name text not null)")
        app.execute("grant select, trigger on people to trickle")
        app.execute("insert into people select g, 'p' || g from generate_series(1, 20) g")
    yield database
    drop_database(database)


@pytest.fixture
def broker(monkeypatch):
    monkeypatch.setattr(broker_module, "TICK_SECONDS", 0.05)
    broker = Broker(100)
    yield broker
    broker.close()


@pytest.fixture
def readers(server, database_names, origin, broker):
    with ExitStack() as stack:

        def make(shared: Broker | None = broker) -> Reader:
            database = create_database(server, next(database_names), TEMPLATE)
            stack.callback(drop_database, database)
            reader = Reader(database, origin.dsn(), shared)
            stack.callback(reader.close)
            return reader

        yield make


@pytest.fixture
def app(origin):
    with closing(origin.connect(APP, autocommit=True)) as app:
        yield app


def people(app: psycopg.Connection) -> list[tuple[object, ...]]:
    return sorted(app.execute("select id, name from people").fetchall())


def test_a_window_is_read_once_for_all(readers, app, broker, monkeypatch):
    both = [readers(), readers(), readers()]
    monkeypatch.setattr(broker_module, "TICK_SECONDS", 60.0)
    for server in broker._servers.values():
        server.tick = None
    before = (broker.counters.read, broker.counters.shared)
    app.execute("update people set name = 'x' where id < 4; delete from people where id = 9")
    for reader in both:
        reader.follow()
        assert reader.rows() == people(app)
    assert (broker.counters.read, broker.counters.shared) > before
    assert broker.counters.read - before[0] == 1
    assert broker.pairs == 3


def test_a_late_reader_gets_the_window_after_the_snapshot_was_ended(readers, app, broker):
    first, late = readers(), readers()
    app.execute("update people set name = 'y' where id < 4")
    first.follow()
    (server,) = broker._servers.values()
    server.tick.opened_at -= 2
    broker.rest()
    before = (broker.counters.read, broker.counters.shared)
    late.follow()
    assert late.rows() == people(app)
    assert broker.counters.read == before[0]
    assert broker.counters.shared > before[1]


def test_readers_at_different_points_get_what_each_of_them_lacks(readers, app, broker):
    first, second = readers(), readers()
    app.execute("update people set name = 'one' where id = 1")
    first.follow()
    app.execute("update people set name = 'two' where id in (1, 2)")
    with closing(second.database.connect(APP)):
        second.follow()
    first.follow()
    app.execute("delete from people where id = 2")
    for _ in range(2):
        # the first time it may get an older snapshot that it had not passed
        second.follow()
        first.follow()
    assert first.rows() == second.rows() == people(app)


def test_two_processes_that_follow_for_one_database_do_not_disturb_each_other(readers, app, origin):
    first = readers(None)
    second = AttachedDatabases(first.pool, {"crm": origin.dsn()}.get)
    failures: list[BaseException] = []

    def follow(attached: AttachedDatabases) -> None:
        for _ in range(15):
            try:
                (database,) = attached.list()
                attached.follow(database)
            except Busy:
                continue
            except BaseException as failure:
                failures.append(failure)

    threads = [threading.Thread(target=follow, args=(one,)) for one in (first.attached, second)]
    for thread in threads:
        thread.start()
    for number in range(40):
        app.execute("update people set name = %s where id %% 3 = %s", (str(number), number % 3))
    for thread in threads:
        thread.join()
    second.close()
    assert failures == []
    first.follow()
    assert first.rows() == people(app)


STEPS = ("open", "definition", "window", "_tick", "_claim", "_read")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_a_broker_that_dies_at_any_step_is_not_missed(readers, app, broker, monkeypatch, step, is_after):
    first, second = readers(), readers()
    app.execute("update people set name = name || '!' where id % 2 = 0; delete from people where id = 7")
    real = getattr(Broker, step)

    def dying(self, *given):
        if is_after:
            real(self, *given)
        with closing(origin_admin(first)) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'pgtrickle broker' and usename = 'trickle'"
            )
        if not is_after:
            return real(self, *given)
        raise Unshared

    monkeypatch.setattr(Broker, step, dying)
    for reader in (first, second):
        reader.follow()
        assert reader.rows() == people(app)
    monkeypatch.setattr(Broker, step, real)
    app.execute("insert into people values (100, 'after')")
    for reader in (first, second):
        reader.follow()
        assert reader.rows() == people(app)


def origin_admin(reader: Reader) -> psycopg.Connection:
    return psycopg.connect(reader.database.server.dsn(), autocommit=True)


def test_another_process_reads_for_itself_until_the_broker_is_silent(readers, app, broker, origin):
    first = readers()
    other = Broker(100)
    second = readers(other)
    app.execute("update people set name = 'both'")
    first.follow()
    second.follow()
    assert (first.rows(), other.counters.read) == (people(app), 0)
    assert second.rows() == people(app)
    broker.close()
    app.execute("update people set name = 'taken over' where id = 3")
    second.follow()
    assert second.rows() == people(app)
    assert other.counters.read == 1
    other.close()


def test_entries_show_what_the_broker_reads(readers, app, broker, origin, monkeypatch):
    monkeypatch.setattr(broker_module, "RENEW_SECONDS", 0.0)
    first = readers()
    for name in ("a", "b"):
        app.execute("update people set name = %s where id = 1", (name,))
        first.follow()
    with closing(origin.connect(TRICKLE, autocommit=True)) as there:
        rows = there.execute(
            "select source, readers, pending_rows, last_updated_tick > 0, is_served"
            " from pgtrickle.broker_entries"
        ).fetchall()
    assert rows == [("public.people", 1, 2, True, True)]


def test_interest_ends_with_the_last_stream_table(readers, app, broker):
    reader = readers()
    app.execute("delete from people where id = 2")
    reader.follow()
    assert broker.pairs == 1
    with closing(reader.database.connect(APP, autocommit=True)) as owner:
        owner.execute("select pgtrickle.drop_stream_table('copied')")
    (database,) = reader.attached.list()
    reader.follow()
    assert not reader.attached.has_news(database)
    assert broker.pairs == 0


def test_too_many_pairs_are_refused(readers, app, broker):
    readers()
    broker._capacity = 1
    with pytest.raises((BrokerFull, AttachedFailed), match="over its limit of 1"):
        readers()


def test_a_window_that_is_too_large_is_read_by_each(readers, app, broker, monkeypatch):
    monkeypatch.setattr(broker_module, "MOST_BYTES", 10)
    reader = readers()
    app.execute("update people set name = repeat('x', 100)")
    reader.follow()
    assert reader.rows() == people(app)


def test_an_idle_broker_holds_no_snapshot(readers, app, broker, origin):
    reader = readers()
    app.execute("delete from people where id = 1")
    reader.follow()
    (server,) = broker._servers.values()
    assert server.tick is not None
    server.tick.opened_at -= 2
    broker.rest()
    assert not server.tick.is_open
    assert server.connection is not None
    assert server.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
