"""`install --print-grants` prints the SQL that gives roles exactly what they lack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import NoReturn

import psycopg
import pytest
from psycopg import sql

from pgtrickle.catalog.install import install
from pgtrickle.catalog.tables import find
from pgtrickle.commands import define
from pgtrickle.commands.grants import grants
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import CommandRefused
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import Database, create_database, drop_database

pytestmark = pytest.mark.every_postgres

SIDECAR, OWNER = "Side Car", "own'er"


def no_spark() -> NoReturn:
    raise AssertionError("PostgreSQL alone evaluates a FULL refresh")


@pytest.fixture
def shop(server, templates, database_names) -> Iterator[Database]:
    """A database without pgtrickle, closed to everybody, and two roles without any right."""
    templates.ensure(server)
    database = create_database(server, next(database_names), "template1")
    with closing(database.connect(SUPERUSER, autocommit=True)) as admin:
        name = sql.Identifier(database.name)
        admin.execute(sql.SQL("revoke all on database {} from public").format(name))
        admin.execute("revoke all on schema public from public")
        for role in (SIDECAR, OWNER):
            create = "create role {} login password {}"
            admin.execute(sql.SQL(create).format(sql.Identifier(role), sql.Literal(database.server.password)))
        admin.execute('create schema "My Shop"')
        admin.execute(
            'create table "My Shop"."Orders"(id int primary key, amount int) partition by range (id)'
        )
        admin.execute(
            'create table "My Shop".low partition of "My Shop"."Orders" for values from (0) to (10)'
        )
        admin.execute('insert into "My Shop"."Orders" values (1, 10)')
        admin.execute(
            'create materialized view "My Shop".totals as select sum(amount) from "My Shop"."Orders"'
        )
    yield database
    drop_database(database)
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        for role in (SIDECAR, OWNER):
            admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.fixture
def admin(shop: Database) -> Iterator[psycopg.Connection]:
    with closing(shop.connect(SUPERUSER, autocommit=True)) as connection:
        yield connection


QUERY = 'select sum(amount) as total from "My Shop"."Orders"'


def works(shop: Database, sidecar: str, owner: str) -> None:
    """Install, create and refresh under these roles."""
    with closing(shop.connect(sidecar)) as connection:
        install(connection)
    define.create(shop.dsn(owner), '"My Shop".sums', QUERY, {"refresh_mode": "FULL"})
    define.create(shop.dsn(owner), '"My Shop".more', 'table "My Shop".totals', {"refresh_mode": "FULL"})
    engine = Engine(shop.dsn(sidecar), no_spark, max_connections=8)
    try:
        for name in ('"My Shop".sums', '"My Shop".more'):
            with engine.connection() as connection:
                table = find(connection, name)
            refresh(engine, table.id, initiated_by="test", waits=True)
    finally:
        engine.close()


def test_the_printed_grants_are_enough_for_one_role(shop, admin):
    statements = grants(shop.dsn(SUPERUSER), SIDECAR, schema="My Shop")
    assert statements == [
        f'grant connect, create, temporary on database {shop.name} to "Side Car"',
        'grant create, usage on schema "My Shop" to "Side Car"',
        'grant select, trigger on "My Shop"."Orders" to "Side Car"',
        'grant trigger on "My Shop".low to "Side Car"',
        'grant select on "My Shop".totals to "Side Car"',
    ]
    for statement in statements:
        admin.execute(statement)
    works(shop, SIDECAR, SIDECAR)
    assert grants(shop.dsn(SUPERUSER), SIDECAR, schema="My Shop", sources=['"My Shop"."Orders"']) == []


def test_the_printed_grants_are_enough_for_separate_roles(shop, admin):
    statements = grants(shop.dsn(SUPERUSER), SIDECAR, owners=[OWNER], schema="My Shop")
    assert f'grant connect, temporary on database {shop.name} to "own\'er"' in statements
    assert 'grant create, usage on schema "My Shop" to "own\'er"' in statements
    assert 'grant usage on schema "My Shop" to "Side Car"' in statements
    assert 'grant select on "My Shop"."Orders", "My Shop".totals to "own\'er"' in statements
    for statement in statements:
        admin.execute(statement)
    works(shop, SIDECAR, OWNER)


def test_a_role_that_does_not_exist_is_created_first(shop):
    statements = grants(shop.dsn(SUPERUSER), "nobody yet", schema="My Shop", sources=['"My Shop".totals'])
    assert statements == [
        'create role "nobody yet" login',
        f'grant connect, create, temporary on database {shop.name} to "nobody yet"',
        'grant create, usage on schema "My Shop" to "nobody yet"',
        'grant select on "My Shop".totals to "nobody yet"',
    ]


def test_unknown_names_are_refused(shop):
    with pytest.raises(CommandRefused, match="there is no schema nowhere"):
        grants(shop.dsn(SUPERUSER), SIDECAR, schema="nowhere")
    with pytest.raises(CommandRefused, match="there is no table nothing"):
        grants(shop.dsn(SUPERUSER), SIDECAR, sources=["nothing"])


def test_the_command_line_prints_runnable_sql(shop, admin, cli):
    answer = cli("install", "--print-grants", SIDECAR, "--schema", "My Shop", dsn=shop.dsn(SUPERUSER))
    assert (answer.exit_code, answer.err) == (0, "")
    admin.execute(answer.out)
    answer = cli("install", "--print-grants", SIDECAR, "--schema", "My Shop", dsn=shop.dsn(SUPERUSER))
    assert answer.out == "-- no grant is missing\n"
    answer = cli(
        "install", "--print-grants", SIDECAR, "--schema", "My Shop", "--json", dsn=shop.dsn(SUPERUSER)
    )
    assert json.loads(answer.out) == {"statements": []}
    assert admin.execute("select to_regnamespace('pgtrickle')").fetchone() == (None,)
