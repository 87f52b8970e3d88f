"""Tables are followed on a standby of the server that has them, and the primary has no slot of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER, Server
from pgtrickle.model.errors import AttachedFailed, PgTrickleError
from pgtrickle.model.stream_table import Action
from tests.attached.conftest import ALIAS, refresh_by_name
from tests.attached.log.conftest import READER, Logged
from tests.attached.log.standbys import standby_of, telling_what_runs
from tests.fixtures.databases import APP, TRICKLE, Database
from tests.fixtures.waiting import eventually

pytestmark = [pytest.mark.database, pytest.mark.slow, pytest.mark.on_postgres(18)]

QUERY = "select v, count(*) as n, sum(id) as total from crm.public.items group by v"


@pytest.fixture
def standby(server: Server, crm: Database) -> Iterator[Server]:
    with standby_of(server) as standby, telling_what_runs(server):
        yield standby


@pytest.fixture
def items(standby: Server, crm: Database, database: Database, engine, app) -> Iterator[Logged]:
    there = Database(standby, crm.name)
    engine.attached.resolve = {"a standby": there.dsn(READER)}.get
    with (
        closing(crm.connect(APP, autocommit=True)) as writer,
        closing(crm.connect(SUPERUSER, autocommit=True)) as admin,
        closing(database.connect(TRICKLE, autocommit=True)) as local,
    ):
        local.execute("select pgtrickle.attach_database(%s, 'a standby', cdc_mode => 'wal')", (ALIAS,))
        logged = Logged(crm, writer, local, engine, admin)
        writer.execute("create table items (id int primary key, v int)")
        writer.execute(f"grant select on items to {READER}")
        writer.execute("insert into items select g, g % 5 from generate_series(1, 60) g")
        logged.publish("items")
        replayed(logged, standby)
        logged.declare("items")
        app.execute("select pgtrickle.create_stream_table('grouped', %s)", (QUERY,))
        yield logged
        engine.attached.close()


def replayed(items: Logged, standby: Server) -> None:
    """Wait until the standby has what the primary has now."""
    row = items.admin.execute("select pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    items.admin.execute("select pg_logical_emit_message(true, 'test', '')")

    def is_there() -> bool:
        with psycopg.connect(standby.dsn()) as reader:
            found = reader.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", row).fetchone()
            return bool(found and found[0])

    eventually(is_there)


def slots_of(server: Server) -> list[str]:
    with psycopg.connect(server.dsn()) as admin:
        rows = admin.execute(
            "select slot_name from pg_replication_slots where slot_type = 'logical' and not temporary"
            " and slot_name like 'pgtrickle%'"
        )
        return [name for (name,) in rows]


def refreshed(items: Logged) -> Action | None:
    return refresh_by_name(items.engine, "grouped").action


def test_a_standby_is_followed_across_a_restart_and_its_promotion(items, standby, server):
    with items.database.connect("app") as late:
        # it begins before the first snapshot and commits after it was asked for
        late.execute("insert into items values (1000, 1)")
        late.commit()
    refreshed(items)
    replayed(items, standby)
    assert (slots_of(server), len(slots_of(standby))) == ([], 1)
    with items.database.connect("app") as late:
        late.execute("update items set v = 50 where id = 10")
        for change in (
            "update items set v = v + 1 where id < 9",
            "delete from items where id = 20; insert into items values (20, 4)",
            "update items set id = -id where id between 30 and 35",
            "delete from items where id = -31",
        ):
            items.app.execute(change)
        replayed(items, standby)
        assert refreshed(items) is Action.DIFFERENTIAL
        late.commit()
    replayed(items, standby)
    assert refreshed(items) is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")
    items.follow(compares=True)

    items.app.execute("update items set v = 3 where id > 40")
    standby.restart()
    replayed(items, standby)
    with pytest.raises(PgTrickleError):
        refreshed(items)
    assert refreshed(items) is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")

    items.app.execute("update items set v = 77 where id < 3")
    replayed(items, standby)
    with psycopg.connect(standby.dsn(), autocommit=True) as admin:
        assert admin.execute("select pg_promote(true)").fetchone() == (True,)
    # from now on it has a history of its own
    with closing(psycopg.connect(standby.dsn(items.database.name), autocommit=True)) as writer:
        writer.execute("update items set v = 88 where id between 3 and 5")
        assert refreshed(items) is Action.DIFFERENTIAL
        writer.execute("delete from items where id = 5")
        assert refreshed(items) is Action.DIFFERENTIAL
        items.app = writer
        items.check("grouped", QUERY, "items")
        items.follow(compares=True)


def test_a_slot_that_a_conflict_has_invalidated_leads_to_a_comparison(items, standby, server):
    refreshed(items)
    standby._settings["hot_standby_feedback"] = "off"
    standby.restart()
    # the primary removes rows of catalogs that decoding on the standby still needs
    eventually(partial(_has_conflict, items, standby), seconds=60)
    items.app.execute("update items set v = 9 where id = 1")
    replayed(items, standby)
    items.engine.attached.close()
    assert refreshed(items) is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")


def _has_conflict(items: Logged, standby: Server) -> bool:
    items.admin.execute("create table gone (id int); drop table gone")
    items.admin.execute("vacuum pg_class, pg_attribute, pg_type")
    items.admin.execute("select pg_log_standby_snapshot()")
    with psycopg.connect(standby.dsn()) as reader:
        row = reader.execute("select bool_or(conflicting) from pg_replication_slots").fetchone()
        return bool(row and row[0])


@pytest.mark.thorough
def test_what_is_not_published_is_told_with_where_to_do_it(items, standby):
    items.app.execute(f"create table others (id int primary key); grant select on others to {READER}")
    replayed(items, standby)
    items.local.execute("select pgtrickle.declare_source('crm', 'public', 'others')")
    items.follow()
    (told,) = items.local.execute(
        "select last_error from pgtrickle.attached_tables where origin_name = 'others'"
    ).fetchone()
    assert "this server is a standby; run there: alter publication pgtrickle_attached add table" in told
    standby.stop()
    items.app.execute("update items set v = 5")
    with pytest.raises(AttachedFailed, match="crm cannot be followed"):
        refreshed(items)
    standby.start()
    replayed(items, standby)
    refreshed(items)
    items.check("grouped", QUERY, "items")
