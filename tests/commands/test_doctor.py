"""Doctor: the installation and its stream tables are broken on a real server, found, and healed."""

from __future__ import annotations

import json

import pytest

from pgtrickle.commands.doctor import doctor
from pgtrickle.model.finding import Finding, Severity
from pgtrickle.model.settings import read_settings
from tests.commands.findings import severities, troubles
from tests.fixtures.databases import TRICKLE
from tests.fixtures.poolers import new_pooler
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

QUERY = "select region, sum(amount) as total from orders group by region"

SIDECAR = (
    "insert into pgtrickle.pgt_sidecars (sidecar_id, host, process, version, started_at, seen_at, workers,"
    " busy, queued, vitals) values (gen_random_uuid(), 'there', 7, %s, now(), clock_timestamp(), 4, 0, 0, %s)"
)


@pytest.mark.light
@pytest.mark.spark
@pytest.mark.usefixtures("orders")
def test_a_served_database_has_no_error(examine, engine, stream_table):
    stream_table(QUERY, name="sales")
    with running(engine):
        eventually(lambda: bool([one for one in examine("in place") if one.severity is Severity.OK]))
        found = examine()
    assert [one for one in found if one.severity is Severity.ERROR] == []
    assert {"python", "java", "triggers", "privileges", "capture", "sidecars", "notify"} <= {
        one.check for one in found
    }


@pytest.mark.every_postgres
@pytest.mark.usefixtures("sales")
def test_an_unserved_database_has_no_other_error(examine):
    found = examine()
    assert [(one.check, one.severity) for one in found if one.severity is Severity.ERROR] == [
        ("sidecars", Severity.ERROR)
    ]
    assert not [one for one in found if "the check failed" in one.message]


def test_without_a_connection_nothing_is_said_about_the_database():
    found = doctor(read_settings({}, dsn="postgresql://nobody@127.0.0.1:1/nothing"))
    assert [one.severity for one in found if one.check == "connection"] == [Severity.ERROR]
    assert [one.severity for one in found if one.check == "database"] == [Severity.UNCHECKED]
    assert not {"triggers", "privileges", "catalog"} & {one.check for one in found}


def test_a_missing_or_other_catalog_is_an_error(examine, admin):
    admin.execute("insert into pgtrickle.pgt_schema_version (version) values (9999)")
    assert severities(examine("catalog")) == {"ERROR"}
    admin.execute("drop schema pgtrickle cascade")
    (found,) = examine("catalog")
    assert (found.severity, found.remedy) == (Severity.ERROR, "run `pgtrickle install`")


@pytest.mark.usefixtures("sales")
def test_in_a_copy_only_what_can_be_known_is_told(examine, admin):
    admin.execute("update pgtrickle.pgt_identity set database_id = 0")
    found = examine()
    assert [one.severity for one in found if one.check == "copy"] == [Severity.ERROR]
    assert [one.severity for one in found if one.check == "stream tables"] == [Severity.UNCHECKED]
    assert not {"triggers", "privileges", "lookups"} & {one.check for one in found}


@pytest.mark.usefixtures("sales")
@pytest.mark.parametrize(
    ("broken", "grant"),
    [
        ("revoke select on orders from trickle", "grant select on public.orders to trickle"),
        ("revoke trigger on orders from trickle", "grant trigger on public.orders to trickle"),
        ("revoke usage on schema public from public; grant usage, create on schema public to app",
         "grant usage on schema public to trickle"),
        ("alter table orders owner to postgres; revoke all on orders from app",
         "grant select on public.orders to app"),
    ],
)  # fmt: skip
def test_a_revoked_privilege_is_named_and_its_grant_heals(examine, admin, broken, grant):
    assert severities(examine("privileges")) == {"OK"}
    admin.execute(broken)
    found = troubles(examine("privileges"))
    assert grant in [one.remedy for one in found]
    for one in found:
        admin.execute(one.remedy)
    assert severities(examine("privileges")) == {"OK"}


@pytest.mark.usefixtures("sales")
def test_a_function_that_may_not_be_called_is_named(examine, admin, app):
    admin.execute(
        "create function twice(x int) returns int language sql immutable as 'select 2 * x';"
        "revoke execute on function twice from public; grant execute on function twice to app, trickle"
    )
    app.execute(
        "select pgtrickle.create_stream_table('doubled', 'select id, twice(amount) as a from orders')"
    )
    assert severities(examine("privileges")) == {"OK"}
    admin.execute("revoke execute on function twice from app")
    (found,) = examine("privileges")
    assert found.remedy == "grant execute on function public.twice(integer) to app"


@pytest.mark.usefixtures("sales")
def test_a_trigger_that_is_off_or_gone_is_named_and_its_remedy_heals(examine, admin, app):
    (name,) = admin.execute(
        "select trigger_name from pgtrickle.trigger_inventory() where event = 'delete'"
    ).fetchone()
    admin.execute(f"alter table orders disable trigger {name}")
    (found,) = troubles(examine("triggers"))
    assert (found.severity, found.remedy) == (
        Severity.ERROR,
        f"alter table public.orders enable trigger {name}",
    )
    admin.execute(found.remedy)
    assert severities(examine("triggers")) == {"OK"}
    admin.execute(f"drop trigger {name} on orders")
    (found,) = troubles(examine("triggers"))
    assert found.remedy == "select pgtrickle.repair_stream_table('public.sales')"
    app.execute(found.remedy)
    assert severities([*examine("triggers"), *examine("capture")]) == {"OK"}


def test_the_triggers_of_partitions_and_odd_names_are_checked(examine, admin, app):
    admin.execute(
        'create schema "My Shop" authorization app; set role app;'
        'create table "My Shop"."Big Orders" (id int, at date) partition by range (at);'
        """create table "My Shop".part partition of "My Shop"."Big Orders"
            for values from ('2026-01-01') to ('2027-01-01');"""
        'grant usage on schema "My Shop" to trickle;'
        'grant select, trigger on all tables in schema "My Shop" to trickle; reset role'
    )
    name, query = """"My Shop"."O'Hara\"""", 'select id from "My Shop"."Big Orders"'
    app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))
    assert severities([*examine("triggers"), *examine("privileges"), *examine("guards")]) == {"OK"}
    admin.execute('alter table "My Shop".part disable trigger all')
    found = troubles(examine("triggers"))
    assert {one.message.split(" of ")[1].split(" is off")[0] for one in found} == {'"My Shop".part'}
    for one in found:
        admin.execute(one.remedy)
    assert severities(examine("triggers")) == {"OK"}
    admin.execute(f"drop trigger pgtrickle_guard on {name}")
    (bare,) = examine("guards")
    assert bare.remedy == """select pgtrickle.repair_stream_table('"My Shop"."O''Hara"')"""
    app.execute(bare.remedy)
    assert severities(examine("guards")) == {"OK"}


@pytest.mark.usefixtures("sales")
def test_a_published_stream_table_that_cannot_be_refreshed_is_found(examine, admin, app):
    assert severities(examine("publications")) == {"OK"}
    admin.execute("create publication everything for tables in schema public")
    (found,) = troubles(examine("publications"))
    assert "is published without a replica identity" in found.message
    app.execute(found.remedy)
    assert severities(examine("publications")) == {"OK"}


@pytest.mark.usefixtures("sales")
def test_a_damaged_trigger_function_is_found(examine, admin):
    (oid,) = admin.execute("select 'orders'::regclass::oid").fetchone()
    admin.execute(
        f"create or replace function pgtrickle_changes.capture_{oid}() returns trigger language plpgsql"
        " security definer as 'begin return null; end'"
    )
    (found,) = examine("capture")
    assert (found.severity, found.remedy) == (Severity.ERROR, "select * from pgtrickle.repair()")


@pytest.mark.usefixtures("sales")
def test_stream_tables_in_trouble_are_told_with_what_to_do(examine, admin):
    admin.execute(SIDECAR, ("0.1.0", "{}"))
    admin.execute(
        "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = 'division by zero',"
        " is_populated = true"
    )
    (found,) = examine("stream tables")
    assert found == Finding(
        "stream tables",
        Severity.ERROR,
        "public.sales fails: division by zero",
        "`pgtrickle status public.sales`",
    )
    admin.execute("update pgtrickle.pgt_stream_tables set status = 'SUSPENDED'")
    (found,) = examine("stream tables")
    assert found.remedy == "select pgtrickle.resume_stream_table('public.sales')"
    admin.execute(
        "update pgtrickle.pgt_stream_tables set status = 'ACTIVE', frontier = pg_current_snapshot()"
    )
    assert severities(examine("stream tables")) == {"OK"}
    admin.execute("select pgtrickle.gate_source('orders')")
    (found,) = examine("stream tables")
    assert (found.severity, "public.sales" in found.message) == (Severity.WARN, True)


def test_sidecars_tell_their_version_spark_and_computing(examine, admin):
    admin.execute(
        SIDECAR, ("0.0.1", json.dumps({"in_place": "no, because Spark is remote", "tick_ms": 900.0}))
    )
    told = {one.message.partition(":")[0]: one.severity for one in troubles(examine("sidecars"))}
    assert list(told.values()) == [Severity.WARN, Severity.WARN]
    (found,) = examine("in place")
    assert (found.severity, "because Spark is remote" in found.message) == (Severity.WARN, True)
    admin.execute('update pgtrickle.pgt_sidecars set vitals = \'{"waits_for_spark": "it has ended"}\'')
    assert "ERROR" in severities(examine("spark"))


def test_a_pooler_is_seen(examine, server, database):
    assert severities([*examine("pooler"), *examine("notify")]) == {"OK"}
    with new_pooler(server, (TRICKLE,)) as pooler:
        through = pooler.dsn(database.name, TRICKLE)
        assert severities(examine("pooler", dsn=through)) == {"WARN"}
        assert severities(examine("notify", dsn=through)) == {"UNCHECKED"}
        assert severities(examine("connections", dsn=through)) == {"UNCHECKED"}
        direct = database.dsn(TRICKLE)
        assert severities(examine("pooler", dsn=through, listen_dsn=direct)) == {"OK"}
        assert severities(examine("notify", dsn=through, listen_dsn=direct)) == {"OK"}


def test_a_wrong_address_to_listen_at_is_an_error(examine):
    (found,) = examine("notify", listen_dsn="postgresql://nobody@127.0.0.1:1/nothing")
    assert found.severity is Severity.ERROR
