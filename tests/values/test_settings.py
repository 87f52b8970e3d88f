"""Whatever settings a role, a database or a connection string asks for, rows are exact and nothing fails."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pgtrickle.commands import define, status
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from pgtrickle.model.settings import SparkPath as Way
from pgtrickle.postgres.connection import connect
from pgtrickle.postgres.settings import MEANING, PLANNING, TRANSPORT
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.poolers import POOL_SIZE, new_pooler
from tests.values.odd import (
    ALWAYS,
    DOCUMENTS,
    GROUPS,
    MEANT,
    ODD,
    PLAIN,
    TYPES,
    VALUES,
    alter,
    bits,
    rows,
    with_options,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "SETTINGS.md"
QUERIES = {"plain": PLAIN, "groups": GROUPS, "meant": MEANT}


@pytest.fixture
def known(admin):
    """The odd settings of a turn, without those that this version does not have."""
    names = {name.lower() for (name,) in admin.execute("select name from pg_settings")}

    def of(turn):
        return {name: value for name, value in (ODD[turn] | ALWAYS).items() if name.lower() in names}

    return of


@pytest.fixture
def values(admin):
    """A table with values that settings print, parse or compare otherwise."""
    admin.execute(TYPES)
    admin.execute(VALUES)
    admin.execute(f"alter table vals owner to {APP}")
    admin.execute(f"grant select, trigger on vals to {TRICKLE}")
    known = "select count(*) > 0 from pg_config() where name = 'CONFIGURE' and setting ~ 'with-libxml'"
    (has_xml,) = admin.execute(known).fetchone()
    admin.execute(rows(1, 3, has_xml=has_xml))
    return has_xml


@pytest.mark.every_postgres
@pytest.mark.parametrize(("turn", "level"), [*enumerate(["options", "role", "database"])])
def test_rows_are_exact_under_any_settings(database, admin, spark, values, known, turn, level):
    settings = known(turn)
    author, sidecar = database.dsn(APP), database.dsn(TRICKLE)
    if level == "options":
        author, sidecar = with_options(author, settings), with_options(sidecar, settings)
    elif level == "role":
        alter(admin, "role", APP, settings)
        alter(admin, "role", TRICKLE, settings)
    else:
        alter(admin, "database", database.name, settings)
    try:
        queries = QUERIES | ({"documents": DOCUMENTS} if values else {})
        follow_everything(author, sidecar, admin, spark, queries, has_xml=values)
    finally:
        for role in (APP, TRICKLE):
            admin.execute(f"alter role {role} reset all")


def follow_everything(author, sidecar, admin, spark, queries, *, has_xml):
    for name, query in queries.items():
        define.create(author, name, query, {"schedule": "manual"})
    engine = Engine(sidecar, lambda: spark, max_connections=POOL_SIZE)
    try:
        for way in (Way.DISTRIBUTED, Way.SMALL):
            engine.path = way
            for name in queries:
                refresh(engine, name)
            compare(author, engine, queries)
            admin.execute(
                "update vals set f = f / 7, i = -i, c.x = (c).x / 7, fa[1] = fa[1] / 7 where id < 3"
            )
            admin.execute("delete from vals where id = 3")
            admin.execute(rows(3, 3, has_xml=has_xml))
            admin.execute("update vals set d = null, na = null, c = null, m = null, e = null where id = 2")
        for name in queries:
            refresh(engine, name)
        compare(author, engine, queries)
        assert len(status.table_statuses(author)) == len(queries)
        for name in queries:
            assert status.table_status(author, name).pending_changes == 0
            assert status.history(author, name, 5)
    finally:
        engine._spark = None
        engine.close()


def compare(author, engine, queries):
    """Each table holds, bit by bit, what PostgreSQL answers to its author."""
    assert [len(done.name.name) > 0 for done in verify(engine, None)] == [True] * len(queries)
    with closing(psycopg.connect(author, client_encoding="UTF8", autocommit=True)) as connection:
        for name, query in queries.items():
            assert (name, bits(connection, f"select * from {name}")) == (name, bits(connection, query))


def test_our_settings_hold_in_each_transaction_behind_a_pooler(database, admin, known):
    settings = {name: value for name, value in known(0).items() if name != "client_encoding"}
    settings |= {name: "off" for name in PLANNING if name.startswith("enable")}
    settings |= {"join_collapse_limit": "1", "from_collapse_limit": "1"}
    alter(admin, "database", database.name, settings)
    with new_pooler(database.server, (TRICKLE,)) as pooler:
        with connect(pooler.dsn(database.name, TRICKLE), autocommit=True) as connection:
            assert connection.is_pooled
            assert deviations(connection) == []
            with connection.transaction():
                assert deviations(connection) == []
        with connect(pooler.dsn(database.name, TRICKLE)) as connection:
            assert deviations(connection) == []
            connection.rollback()
            assert deviations(connection) == []
    with connect(database.dsn(TRICKLE)) as connection:
        assert not connection.is_pooled
        assert deviations(connection) == []


def deviations(connection):
    """The settings of transport that are not as we want them; the isolation level is of the transaction."""
    wanted = [
        (name, value) for name, value in TRANSPORT.items() if not name.startswith("default_transaction")
    ]
    found = connection.execute(
        "select s.name, current_setting(s.name) from unnest(%s::text[], %s::text[]) as s(name, value)"
        " where current_setting(s.name) is distinct from s.value",
        ([name for name, _ in wanted], [value for _, value in wanted]),
    ).fetchall()
    level = connection.execute("show transaction_isolation").fetchone()
    return found if level == ("read committed",) else [*found, level]


@pytest.mark.every_postgres
def test_every_setting_of_postgresql_is_classified(admin):
    document = DOCUMENT.read_text()
    sections = dict(
        zip(
            re.findall(r"^## (.*)$", document, re.M),
            re.split(r"^## .*$", document, flags=re.M)[1:],
            strict=True,
        )
    )
    named = {section: set(re.findall(r"`([\w.]+)`", text)) for section, text in sections.items()}
    assert named["Meaning"] >= set(MEANING)
    assert named["Transport"] >= set(TRANSPORT)
    classified = {name.lower() for names in named.values() for name in names}
    settings = {name for (name,) in admin.execute("select lower(name) from pg_settings where name !~ '[.]'")}
    assert settings - classified == set()


def test_the_recorded_settings_are_those_that_are_applied(app):
    (recorded,) = app.execute("select pgtrickle_internal.session_settings()").fetchone()
    assert sorted(recorded) == sorted(MEANING)


@pytest.fixture
def storage(admin):
    """Another table access method, and a tablespace in which only the application may create."""
    admin.execute("set allow_in_place_tablespaces = on")
    admin.execute("create tablespace closed location ''")
    admin.execute(f"grant create on tablespace closed to {APP}")
    admin.execute("create access method other type table handler heap_tableam_handler")
    yield {"default_tablespace": "closed", "default_table_access_method": "other"}
    admin.execute("drop schema pgtrickle_changes, pgtrickle_state cascade")
    admin.execute(f"drop owned by {APP} cascade")
    admin.execute("drop tablespace closed")


@pytest.mark.every_postgres
def test_where_a_creator_puts_tables_does_not_decide_where_ours_go(database, admin, source, storage):
    source("orders(id int primary key, amount int)")
    admin.execute("create materialized view seen as select 1 as id")
    admin.execute(f"alter materialized view seen owner to {APP}")
    admin.execute(f"grant select on seen to {TRICKLE}")
    author = with_options(database.dsn(APP), storage)
    query = "select o.id, o.amount from orders o join seen s on s.id = o.id"
    define.create(author, "placed", query, {"schedule": "manual"})
    found = admin.execute(
        "select distinct c.relname = 'placed', coalesce(t.spcname, 'the default'), m.amname from pg_class c"
        " left join pg_tablespace t on t.oid = c.reltablespace join pg_am m on m.oid = c.relam"
        " where c.relkind = 'r' and c.relnamespace::regnamespace::text in"
        " ('public', 'pgtrickle_changes', 'pgtrickle_state') and c.relname <> 'orders'"
    ).fetchall()
    assert set(found) == {(True, "closed", "heap"), (False, "the default", "heap")}
