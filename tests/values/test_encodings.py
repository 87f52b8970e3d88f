"""Databases in other encodings than UTF-8."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import pgtrickle
from pgtrickle.commands import define, status
from pgtrickle.commands.install import install
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import UnsuitableSetting
from pgtrickle.postgres.connection import connect
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE, Database
from tests.fixtures.poolers import POOL_SIZE

SINGLE = (
    *(f"LATIN{number}" for number in range(1, 11)),
    *(f"WIN{number}" for number in range(1250, 1259)),
    *("WIN866", "WIN874", "KOI8R", "KOI8U"),
    *(f"ISO_8859_{number}" for number in range(5, 9)),
)
SEVERAL = ("EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004")


@contextmanager
def encoded(server, encoding):
    """An empty database in an encoding, whose texts are ordered by their bytes."""
    name = f"in_{encoding.lower()}"
    with closing(psycopg.connect(server.dsn(), autocommit=True)) as admin:
        admin.execute(
            sql.SQL(
                "create database {} encoding {} lc_collate 'C' lc_ctype 'C'"
                " template template0 strategy file_copy"
            ).format(sql.Identifier(name), sql.Literal(encoding))
        )
        admin.execute(f"grant create, temporary on database {name} to {TRICKLE}")
    database = Database(server, name)
    if encoding != "MULE_INTERNAL":
        with as_role(database, SUPERUSER) as admin:
            admin.execute(f"grant create on schema public to {APP}")
    try:
        yield database
    finally:
        with closing(psycopg.connect(server.dsn(), autocommit=True)) as admin:
            admin.execute(f"drop database {name} with (force)")


def as_role(database, role):
    """A connection that reads and writes UTF-8."""
    return closing(psycopg.connect(database.dsn(role), autocommit=True, client_encoding="UTF8"))


def test_our_own_sql_is_plain_ascii():
    for path in Path(pgtrickle.__file__).parent.rglob("*.sql"):
        assert (path.name, path.read_text().isascii()) == (path.name, True)


@pytest.mark.slow
@pytest.mark.parametrize("encodings", [SINGLE, SEVERAL], ids=["one byte", "several bytes"])
def test_pgtrickle_can_be_installed_and_create_in_every_encoding(server, templates, encodings):
    templates.ensure(server)
    for encoding in encodings:
        with encoded(server, encoding) as database:
            install(database.dsn())
            with as_role(database, APP) as app:
                app.execute(f"create table t (id int, x text); grant select, trigger on t to {TRICKLE}")
            define.create(database.dsn(APP), "copy", "select * from t where x <> 'a'", {"schedule": "manual"})
            assert [table.name.name for table in status.table_statuses(database.dsn(APP))] == ["copy"]


LETTERS = {
    # Cyrillic is not in the order of its code points
    "KOI8R": "ЖАяБабЮж",
    "EUC_JP": "日本語ア亜",
    "LATIN2": "ąĄłŁżź",
}


@pytest.mark.every_postgres
@pytest.mark.parametrize("encoding", LETTERS)
def test_texts_are_compared_and_ordered_as_in_the_encoding(server, templates, spark, encoding):
    templates.ensure(server)
    letters = LETTERS[encoding]
    with encoded(server, encoding) as database:
        install(database.dsn())
        with as_role(database, APP) as app:
            table = f'"{letters[:3]}"'
            app.execute(f'create table {table} (id int primary key, "{letters[0]}" text)')
            app.execute(f"grant select, trigger on {table} to {TRICKLE}")
            for number, letter in enumerate(letters):
                app.execute(f"insert into {table} values (%s, %s)", (number, letter))
            column = f'"{letters[0]}"'
            queries = {
                "most": f"select id % 2 as k, min({column}) as a, max({column}) as z from {table} group by 1",
                "pairs": f"select a.id, b.id as other, a.{column} as x from {table} a join {table} b"
                f" on a.id % 2 = b.id % 2 and a.{column} < b.{column}",
                "first": f"select id, {column} as x from {table} order by 2 limit 3",
                letters[1]: f"select {column} as x, count(*) as n from {table}"
                f" where {column} <> '{letters[2]}' group by 1",
            }
            for name, query in queries.items():
                define.create(database.dsn(APP), f'"{name}"', query, {"schedule": "manual"})
            engine = Engine(database.dsn(), lambda: spark, max_connections=POOL_SIZE)
            try:
                for turn in range(2):
                    for name in queries:
                        refresh(engine, f'"{name}"')
                    assert len(verify(engine, None)) == len(queries)
                    app.execute(f"update {table} set {column} = {column} || '{letters[-1]}' where id = 1")
                    app.execute(f"delete from {table} where id = 0")
                    app.execute(f"insert into {table} values ({turn + 9}, '{letters[1]}')")
            finally:
                engine._spark = None
                engine.close()


@pytest.mark.every_postgres
def test_a_text_that_utf8_cannot_hold_as_it_is_makes_a_refresh_full(server, templates, spark):
    templates.ensure(server)
    # two codes for one sign; a byte without a sign; bytes that are no UTF-8
    odd = {"EUC_JP": r"\xadf0a2e2", "LATIN3": r"\xa5", "SQL_ASCII": r"\xff41"}
    for encoding, bytes_ in odd.items():
        with encoded(server, encoding) as database:
            install(database.dsn())
            with as_role(database, APP) as app:
                app.execute(f"create table t (id int, x text); grant select, trigger on t to {TRICKLE}")
                app.execute("insert into t values (1, 'a')")
                query = "select x, count(*) as n from t group by x"
                define.create(database.dsn(APP), "copy", query, {"schedule": "manual"})
                engine = Engine(database.dsn(), lambda: spark, max_connections=POOL_SIZE)
                try:
                    refresh(engine, "copy")
                    app.execute(
                        "insert into t select 2, convert_from(decode(%s, 'hex'), %s)", (bytes_[2:], encoding)
                    )
                    assert refresh(engine, "copy").action.value == "FULL"
                    left, right = "select * from copy", query
                    for one, other in ((left, right), (right, left)):
                        left_over = f"select count(*) from ({one} except all {other}) e"
                        assert app.execute(left_over).fetchone() == (0,)
                finally:
                    engine._spark = None
                    engine.close()


def test_an_encoding_that_has_no_translation_is_refused_with_what_to_do(server, templates):
    templates.ensure(server)
    with encoded(server, "MULE_INTERNAL") as database, pytest.raises(UnsuitableSetting) as refused:
        connect(database.dsn())
    assert "MULE_INTERNAL" in refused.value.message
    assert "encoding 'UTF8'" in (refused.value.hint or "")
