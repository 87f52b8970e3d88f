"""A query can be checked before its stream table is created, by any role and without Spark."""

from __future__ import annotations

import json

import psycopg
import pytest

import pgtrickle
from pgtrickle.commands import define
from pgtrickle.commands.validate import validate
from pgtrickle.model.errors import PgTrickleError, UnsupportedQuery
from pgtrickle.model.stream_table import RefreshMode
from tests.fixtures.databases import APP, TRICKLE, Database

AGE = "select id, now() - at as age from orders"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, customer int, at timestamptz)", rows=[(1, 1, "2025-01-01")])


@pytest.fixture
def dsn(database: Database) -> str:
    return database.dsn(APP)


def exists(app: psycopg.Connection, name: str) -> bool:
    row = app.execute("select to_regclass(%s) is not null", (name,)).fetchone()
    assert row is not None
    return bool(row[0])


@pytest.mark.every_postgres
def test_differential_is_refused_at_creation_if_the_query_cannot_be_followed(orders, app, dsn):
    with pytest.raises(UnsupportedQuery, match=r"now\(\)"):
        define.create(dsn, "ages", AGE, {"refresh_mode": "DIFFERENTIAL"})
    with pytest.raises(UnsupportedQuery):
        define.create_or_replace(dsn, "ages", AGE, {"refresh_mode": "differential"})
    with pgtrickle.connect(dsn) as trickle, pytest.raises(UnsupportedQuery):
        trickle.create_stream_table("ages", AGE, refresh_mode="DIFFERENTIAL")
    assert not exists(app, "ages")


def test_a_query_that_can_be_followed_is_created(orders, app, dsn):
    define.create(dsn, "ids", "select id from orders", {"refresh_mode": "DIFFERENTIAL"})
    assert exists(app, "ids")


def test_an_alteration_to_differential_is_refused_in_the_same_way(orders, app, dsn):
    define.create(dsn, "ages", AGE, {})
    with pytest.raises(UnsupportedQuery):
        define.alter(dsn, "ages", {"refresh_mode": "DIFFERENTIAL"})
    define.create(dsn, "ids", "select id, at from orders", {"refresh_mode": "DIFFERENTIAL"})
    with pytest.raises(UnsupportedQuery):
        define.alter(dsn, "ids", {"query": "select id, now() as at from orders"})
    define.alter(dsn, "ids", {"refresh_mode": "DIFFERENTIAL", "schedule": "5s"})


@pytest.mark.every_postgres
def test_a_validation_shows_mode_reason_and_missing_indexes(orders, app, dsn):
    found = validate(dsn, AGE)
    assert (found.asked_mode, found.effective_mode) == (RefreshMode.AUTO, RefreshMode.FULL)
    assert "now()" in found.reason
    found = validate(dsn, "select o.id, p.at from orders o join orders p on p.customer = o.id")
    assert found.effective_mode is RefreshMode.DIFFERENTIAL
    assert found.missing_indexes == ("create index on public.orders (customer)",)
    assert found.missing_grants == ()
    assert found.sources == ("public.orders",)
    assert app.execute("select count(*) from pgtrickle.stream_tables_info").fetchone() == (0,)
    assert app.execute("select count(*) from pg_trigger where tgrelid = 'orders'::regclass").fetchone() == (
        0,
    )


@pytest.mark.every_postgres
def test_the_missing_grants_are_enough_when_they_are_run(admin, app, database, dsn):
    admin.execute('create schema "My Shop"')
    admin.execute('create table "My Shop"."Orders"(id int primary key, at timestamptz)')
    admin.execute('create function "My Shop".twice(id int) returns int immutable language sql return 2 * id')
    admin.execute('revoke execute on function "My Shop".twice(int) from public')
    query = 'select "My Shop".twice(id) as id from "My Shop"."Orders"'
    admin.execute(f'grant usage on schema "My Shop" to {APP}')
    admin.execute(f'grant select on "My Shop"."Orders" to {APP}')
    admin.execute(f'grant execute on function "My Shop".twice(int) to {APP}')
    found = validate(dsn, query)
    assert found.missing_grants == (
        f'grant usage on schema "My Shop" to {TRICKLE}',
        f'grant select on "My Shop"."Orders" to {TRICKLE}',
        f'grant trigger on "My Shop"."Orders" to {TRICKLE}',
        f'grant execute on function "My Shop".twice(integer) to {TRICKLE}',
    )
    for grant in found.missing_grants:
        admin.execute(grant)
    assert validate(dsn, query).missing_grants == ()
    define.create(dsn, "twice", query, {})


def test_a_query_that_its_author_may_not_read_names_the_grants(admin, dsn):
    admin.execute("create table secrets(id int)")
    with pytest.raises(PgTrickleError) as refusal:
        validate(dsn, "select id from secrets")
    assert f"grant select on public.secrets to {APP}" in (refusal.value.hint or "")


def test_without_a_name_a_schema_is_used_in_which_the_author_may_create(admin, orders, dsn):
    admin.execute(f"revoke create on schema public from {APP}")
    admin.execute(f"create schema apart authorization {APP}; grant usage on schema apart to public")
    query = "select id from orders"
    assert validate(dsn, query).missing_grants == ()
    assert validate(dsn, query, name="public.x").missing_grants == (
        f"grant create on schema public to {APP}",
    )


def test_what_creation_refuses_validation_refuses(orders, dsn, app):
    with pytest.raises(PgTrickleError, match="volatile"):
        validate(dsn, "select random() as x from orders")
    with pytest.raises(PgTrickleError, match="exists"):
        validate(dsn, "select id from orders", name="orders")
    with pytest.raises(PgTrickleError, match="syntax error"):
        validate(dsn, "select from from")
    with pytest.raises(PgTrickleError, match="not a refresh mode"):
        validate(dsn, "select id from orders", "SOMETIMES")


def test_the_command_line_shows_a_validation(orders, cli):
    answer = cli("validate", "--query", AGE)
    assert (answer.exit_code, answer.err) == (0, "")
    assert answer.out.startswith("Refresh mode: FULL (requested: AUTO), because: ")
    assert answer.out.endswith("Missing grants: none\nNothing was created.\n")
    answer = cli("validate", "--query", AGE, "-m", "DIFFERENTIAL")
    assert answer.exit_code == 2
    assert "now()" in answer.err


def test_a_dry_run_creates_nothing(orders, cli, app):
    answer = cli("create", "ids", "--query", "select id from orders", "--dry-run", "--json")
    assert json.loads(answer.out)["effective_mode"] == "DIFFERENTIAL"
    assert not exists(app, "ids")


def test_a_missing_grant_is_an_error_of_the_command(admin, cli):
    admin.execute(f"create table lonely(id int); grant select on lonely to {APP}")
    answer = cli("validate", "--query", "select id from lonely")
    assert answer.exit_code == 2
    assert f"  grant select on public.lonely to {TRICKLE};" in answer.out.splitlines()
