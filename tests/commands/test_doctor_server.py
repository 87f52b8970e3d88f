"""Doctor: settings, resources and other sessions of the server that slow or stop refreshes are found."""

from __future__ import annotations

import json
import sys

import psycopg
import pytest

from pgtrickle.commands.checkup import speed, tables
from pgtrickle.model.finding import Severity
from tests.commands.findings import severities, troubles
from tests.fixtures.databases import APP
from tests.fixtures.waiting import eventually

QUERY = "select region, sum(amount) as total from orders group by region"


@pytest.mark.parametrize(
    ("setting", "check"),
    [
        ("statement_timeout = '5s'", "settings"),
        ("session_replication_role = replica", "settings"),
        ("default_transaction_read_only = on", "server"),
    ],
)
def test_settings_of_the_role_that_stop_refreshes_are_found(examine, admin, database, setting, check):
    assert not troubles(examine(check))
    name = setting.partition(" ")[0]
    admin.execute(f"alter role trickle in database {database.name} set {setting}")
    try:
        (found,) = troubles(examine(check))
        assert name in (found.remedy or "")
    finally:
        admin.execute(f"alter role trickle in database {database.name} reset {name}")


def test_too_few_connections_are_found(examine, admin, database):
    assert severities(examine("connections")) == {"OK"}
    assert severities(examine("connections", max_connections="5000")) == {"WARN"}
    admin.execute(f"alter database {database.name} connection limit 6")
    assert severities(examine("connections")) == {"ERROR"}


@pytest.mark.usefixtures("sales")
@pytest.mark.every_postgres
def test_rows_from_a_subscription_that_triggers_miss_are_found(examine, admin):
    assert severities(examine("replication")) == {"OK"}
    admin.execute("create subscription feed connection 'dbname=nothing' publication p with (connect = false)")
    try:
        admin.execute(
            "insert into pg_subscription_rel (srsubid, srrelid, srsubstate)"
            " select s.oid, 'orders'::regclass, 'r' from pg_subscription s"
        )
        admin.execute("select pgtrickle_internal.refit_capture('orders'::regclass::oid)")
        admin.execute("alter table orders enable trigger user")
        found = troubles(examine("replication"))
        assert len(found) == 1
        admin.execute(found[0].remedy)
        assert severities(examine("replication")) == {"OK"}
    finally:
        admin.execute("alter subscription feed set (slot_name = none); drop subscription feed")


@pytest.mark.usefixtures("sales")
def test_a_missing_index_on_a_large_source_is_found_and_creating_it_heals(examine, admin, app, source):
    customers = source("customers(id int primary key, name text)", rows=[(1, "Ann")])
    app.execute(
        "create table bills (id int primary key, customer int); grant select, trigger on bills to trickle;"
        "insert into bills select n, 1 from generate_series(1, 20000) n; analyze bills"
    )
    app.execute(
        "select pgtrickle.create_stream_table('named', "
        "'select b.id, c.name from bills b join customers c on c.id = b.customer')"
    )
    admin.execute("update pgtrickle.pgt_stream_tables set effective_refresh_mode = 'DIFFERENTIAL'")
    (found,) = examine("lookups")
    assert (found.severity, customers.name) == (Severity.WARN, "customers")
    assert found.remedy == "create index concurrently on public.bills (customer)"
    app.execute(found.remedy)
    assert severities(examine("lookups")) == {"OK"}


@pytest.mark.usefixtures("sales")
def test_what_there_was_no_time_for_is_told(examine, admin, monkeypatch):
    monkeypatch.setattr(speed, "LARGE_ROWS", 0)
    monkeypatch.setattr(speed, "COMPILE_SECONDS", -1.0)
    admin.execute("update pgtrickle.pgt_stream_tables set effective_refresh_mode = 'DIFFERENTIAL'")
    (found,) = examine("lookups")
    assert (found.severity, found.message.startswith("1 of 1 stream tables")) == (Severity.UNCHECKED, True)


@pytest.mark.usefixtures("sales")
def test_a_source_without_statistics_is_found_and_analyzing_heals(examine, app, admin):
    assert severities(examine("statistics")) == {"OK"}
    app.execute("alter table orders set (autovacuum_enabled = off)")
    app.execute("insert into orders select n, repeat('x', 100), 1 from generate_series(2, 20000) n")
    (found,) = examine("statistics")
    assert (found.severity, found.remedy) == (Severity.WARN, "analyze public.orders")
    admin.execute(found.remedy)
    assert severities(examine("statistics")) == {"OK"}


def test_a_long_transaction_is_found_and_named(examine, admin, connect, monkeypatch):
    monkeypatch.setattr(speed, "LONG_SECONDS", 0)
    unseen = examine("transactions")
    assert severities(unseen) == {"UNCHECKED"}
    admin.execute(unseen[0].remedy)
    try:
        idle = connect(APP)
        idle.execute("select pg_current_xact_id()")
        found = [one for one in examine("transactions") if " of app " in one.message]
        assert (len(found), found[0].severity) == (1, Severity.WARN)
        assert "its changes reach no stream table before it commits" in found[0].message
        admin.execute(found[0].remedy)
        eventually(lambda: not [one for one in examine("transactions") if " of app " in one.message])
    finally:
        admin.execute("revoke pg_read_all_stats from trickle")


def test_a_forgotten_prepared_transaction_is_found(examine, admin, connect, monkeypatch):
    monkeypatch.setattr(speed, "LONG_SECONDS", 0)
    forgotten = connect(APP)
    forgotten.execute("create table lost (id int)")
    forgotten.execute("prepare transaction 'it''s lost'")
    found = [one for one in examine("transactions") if "prepared transaction" in one.message]
    assert [one.remedy for one in found] == [
        "commit prepared 'it''s lost'; or: rollback prepared 'it''s lost'"
    ]
    admin.execute("rollback prepared 'it''s lost'")


@pytest.mark.usefixtures("sales")
def test_a_large_buffer_is_found_with_who_does_not_read_it(examine, app, monkeypatch):
    monkeypatch.setattr(tables, "LARGE_BUFFER_BYTES", 8192)
    app.execute("insert into orders select n, 'south', 1 from generate_series(2, 2000) n")
    (found,) = examine("buffers")
    assert (found.severity, "public.sales has 1,999" in found.message) == (Severity.WARN, True)


@pytest.mark.usefixtures("sales")
def test_another_role_is_told_what_it_cannot_see(examine, database):
    found = {one.check: one.severity for one in examine(dsn=database.dsn(APP))}
    for check in ("privileges", "capture", "settings", "temporary files"):
        assert found[check] is Severity.UNCHECKED
    assert found["triggers"] is Severity.OK
    assert "grant" not in str(found)


def test_a_missing_java_is_found(examine, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (found,) = examine("java")
    assert (found.severity, str(tmp_path) in found.message) == (Severity.ERROR, True)
    assert severities(examine("java", spark_master="sc://there:15002")) == {"OK"}


def test_too_little_room_for_temporary_files_is_found(examine, monkeypatch):
    from pgtrickle.commands.checkup import host

    monkeypatch.setattr(host, "LEAST_FREE_BYTES", sys.maxsize)
    assert "WARN" in severities(examine("disk"))


def test_temporary_files_without_a_limit_are_found(examine, admin):
    (found,) = examine("temporary files")
    assert (found.severity, found.remedy) == (
        Severity.WARN,
        "grant set on parameter temp_file_limit to trickle",
    )
    admin.execute(found.remedy)
    try:
        assert severities(examine("temporary files")) == {"OK"}
    finally:
        admin.execute("revoke set on parameter temp_file_limit from trickle")


@pytest.mark.slow
@pytest.mark.spark
def test_spark_is_started_if_asked_for(dsn):
    from tests.interfaces.test_doctor import run_doctor

    done = run_doctor(dsn, "--spark", "--json")
    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert (found["spark"]["severity"], found["in place"]["severity"]) == ("OK", "OK")


def test_a_check_that_fails_is_no_claim(examine, admin: psycopg.Connection):
    admin.execute("revoke execute on function pgtrickle.trigger_inventory from public, trickle")
    admin.execute("alter function pgtrickle.trigger_inventory owner to postgres")
    (found,) = examine("triggers")
    assert (found.severity, "the check failed" in found.message) == (Severity.UNCHECKED, True)
