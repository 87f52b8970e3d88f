"""Triggers that fire for replicated writes go on to do so when others read more of the table."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.capture.repair import retry_capture
from tests.capture.test_shapes import partitioned
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres


def create_as_stranger(admin: psycopg.Connection, query: str) -> None:
    """Create a stream table as a role that may read the source, and does not own it."""
    role = f"reader_{admin.info.dbname}"
    admin.execute(f"create role {role}")
    admin.execute(f"grant select on all tables in schema public to {role}")
    admin.execute(f"grant create on schema public to {role}")
    admin.execute(f"set role {role}")
    admin.execute("select pgtrickle.create_stream_table('more', %s)", (query,))
    admin.execute("reset role")


@pytest.fixture(autouse=True)
def without_roles(admin):
    yield
    role = f"reader_{admin.info.dbname}"
    admin.execute("reset all; reset role")
    if admin.execute("select from pg_roles where rolname = %s", (role,)).fetchone():
        admin.execute(f"drop owned by {role}")
        admin.execute(f"drop role {role}")


def silent(admin: psycopg.Connection) -> list[tuple[object, ...]]:
    """The triggers that do not fire for replicated writes."""
    return admin.execute(
        "select w.relation_id::regclass, w.trigger_name, w.enabled from pgtrickle.pgt_sources s,"
        " pgtrickle_internal.wanted_triggers(s.source_relid, s.trigger_level) w"
        " where w.enabled is distinct from 'A'"
    ).fetchall()


def captured(admin: psycopg.Connection, relation: str) -> int:
    row = admin.execute("select %s::regclass::oid::bigint", (relation,)).fetchone()
    assert row is not None
    sides = " union all ".join(f"select from pgtrickle_changes.changes_{row[0]}_{side}" for side in (0, 1))
    found = admin.execute(f"select count(*) from ({sides}) c").fetchone()
    assert found is not None
    return int(found[0])


def test_a_reader_of_more_columns_leaves_the_triggers_of_the_owner_as_they_are(source, app, admin):
    source("orders(id int primary key, amount int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    assert silent(admin) == []
    create_as_stranger(admin, "select id, amount from orders")
    assert silent(admin) == []
    assert admin.execute("select is_always from pgtrickle.pgt_sources").fetchall() == [(True,)]
    admin.execute("set session_replication_role = replica")
    admin.execute("insert into orders values (1, 10)")
    assert captured(admin, "orders") == 1
    # and what captured before goes on without being loaded anew
    admin.execute("reset session_replication_role")
    assert (
        admin.execute("select pgt_name from pgtrickle.pgt_stream_tables where needs_reinit").fetchall() == []
    )
    app.execute("truncate orders")
    app.execute("drop table orders cascade")


def test_partitions_keep_theirs_too(source, app, admin):
    partitioned(source)
    app.execute("select pgtrickle.create_stream_table('s', 'select id from events')")
    assert silent(admin) == []
    create_as_stranger(admin, "select id, v from events")
    assert silent(admin) == []


def test_writers_under_way_are_still_waited_for(source, app, admin, connect, connection):
    source("orders(id int primary key, amount int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    writer = connect(APP)
    writer.execute("insert into orders values (1, 10)")
    create_as_stranger(admin, "select id, amount from orders")
    waiting = "select distinct source_relid::bigint from pgtrickle.pgt_waiting"
    ((source_id,),) = admin.execute(waiting).fetchall()
    writer.commit()
    assert retry_capture(connection, source_id) is None
    assert silent(admin) == []
    writer.execute("insert into orders values (2, 20)")
    writer.commit()
    assert captured(admin, "orders") == 2
