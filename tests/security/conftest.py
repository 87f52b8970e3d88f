"""An attacker who may create tables and stream tables, a secret that only the sidecar may read, and traps.

`evil` functions try to copy the secret into a table of the attacker's, together with the role they run as.
Whatever ends up there under the name of the sidecar's role is a hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NoReturn

import psycopg
import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import TRICKLE, Database

MALLORY = "mallory"
SECRET = "abracadabra"

TRAPS = f"""
create table mallory.log(who name, how text, what text);
grant insert on mallory.log to public;
create table mallory.t(id int primary key, word text, doc jsonb);
insert into mallory.t values (1, 'one', '{{"a": 1, "b": 2}}');
grant select, trigger on mallory.t to {TRICKLE};
create function mallory.note(how text) returns int volatile language plpgsql as $$
declare
    found text;
begin
    begin
        found := (select string_agg(word, ' ') from vault.secrets);
    exception when insufficient_privilege then
        found := 'nothing';
    end;
    insert into mallory.log values (current_user, how, found);
    return 1;
exception when read_only_sql_transaction then
    raise exception 'I am %, and know %', current_user, found;
end $$;
create function mallory.evil(how text) returns int immutable language plpgsql
    as 'begin return mallory.note(how); end';
create function mallory.evil(x int, how text) returns int immutable language plpgsql
    as 'begin perform mallory.note(how); return x; end';
create function mallory.evil_check(x int, how text) returns boolean immutable language plpgsql
    as 'begin perform mallory.note(how); return true; end';
create function mallory.evil_pair(x int, y int) returns boolean immutable language plpgsql
    as $$ begin perform mallory.note('operator'); return true; end $$;
create operator mallory.=== (function = mallory.evil_pair, leftarg = int, rightarg = int);
create domain mallory.trap as int check (mallory.evil_check(value, 'domain'));
create function mallory.spring() returns trigger language plpgsql
    as $$ begin perform mallory.note('trigger'); return null; end $$;
"""


def no_spark() -> NoReturn:
    """FULL refreshes are PostgreSQL's alone."""
    raise AssertionError("an attack needs no Spark")


@dataclass(frozen=True, slots=True)
class Attack:
    """What the attacker does, and what came of it."""

    mallory: psycopg.Connection
    admin: psycopg.Connection
    engine: Engine

    def run(self, *statements: str) -> list[str]:
        """Run statements as the attacker, who goes on when one is refused; the refusals."""
        refusals = []
        for statement in statements:
            try:
                self.mallory.execute(statement)
            except psycopg.Error as error:
                refusals.append(str(error))
        return refusals

    def create(self, query: str, name: str = "mallory.st") -> str | None:
        """Create a stream table as the attacker; the refusal, or None."""
        try:
            self.mallory.execute(
                "select pgtrickle.create_stream_table(%s, %s, schedule => null, refresh_mode => 'FULL')",
                (name, query),
            )
        except psycopg.Error as error:
            return str(error)
        return None

    def refresh(self, name: str = "mallory.st") -> str | None:
        """Let the sidecar refresh it; the error, or None."""
        try:
            with self.engine.connection() as connection:
                table = find(connection, name)
            outcome = refresh(self.engine, table.id, initiated_by="test", waits=True)
        except (PgTrickleError, DatabaseError) as error:
            return str(error)
        return str(outcome.error) if hasattr(outcome, "error") else None

    def change(self) -> None:
        """Give the next refresh something to do."""
        self.mallory.execute(
            "insert into mallory.t select max(id) + 1, 'new', '{\"a\": 3, \"b\": 4}' from mallory.t"
        )

    def succeeded(self) -> list[tuple[object, ...]]:
        """What ran as the sidecar, and where the secret can be read; empty if the attack failed."""
        ran = self.mallory.execute(
            "select who, how, what from mallory.log where who = %s or what = %s", (TRICKLE, SECRET)
        ).fetchall()
        readable = self.mallory.execute(
            "select format('%I.%I', n.nspname, c.relname) from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'v', 'm', 'p')"
            " and n.nspname in ('mallory', 'public', 'pgtrickle')"
            " and has_any_column_privilege(c.oid, 'SELECT') and has_schema_privilege(n.oid, 'USAGE')"
        ).fetchall()
        leaked = [(name,) for (name,) in readable if self._holds_the_secret(name)]
        return [*ran, *leaked]

    def _holds_the_secret(self, relation: str) -> bool:
        columns = self.mallory.execute(
            "select string_agg(quote_ident(attname) || '::text', ', ') from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped"
            " and has_column_privilege(attrelid, attnum, 'SELECT')",
            (relation,),
        ).fetchone()
        assert columns is not None
        statement = f"select exists (select from {relation} where concat_ws(' ', {columns[0]}) like %s)"
        return self.mallory.execute(statement, (f"%{SECRET}%",)).fetchone() == (True,)


@pytest.fixture
def mallory(admin: psycopg.Connection, database: Database) -> Iterator[psycopg.Connection]:
    """The attacker: a schema of its own, CREATE on public, and nothing else."""
    admin.execute(
        f"do $$ begin create role {MALLORY} login password '{database.server.password}';"
        " exception when duplicate_object then null; end $$"
    )
    admin.execute(f"grant create on schema public to {MALLORY}")
    admin.execute(f"create schema mallory authorization {MALLORY}")
    admin.execute("grant usage on schema mallory to public")
    with closing(database.connect(MALLORY, autocommit=True)) as connection:
        connection.execute(TRAPS)
        yield connection


@pytest.fixture
def vault(admin: psycopg.Connection) -> None:
    """The secret, which the sidecar may read because others follow it."""
    admin.execute("create schema vault")
    admin.execute("create table vault.secrets(id int primary key, word text)")
    admin.execute("insert into vault.secrets values (1, %s)", (SECRET,))
    admin.execute(f"grant usage on schema vault to {TRICKLE}")
    admin.execute(f"grant select, trigger on vault.secrets to {TRICKLE}")


@pytest.fixture
def attack(
    database: Database, vault: None, mallory: psycopg.Connection, admin: psycopg.Connection
) -> Iterator[Attack]:
    engine = Engine(database.dsn(TRICKLE), no_spark, max_connections=8)
    try:
        yield Attack(mallory, admin, engine)
    finally:
        engine.close()
