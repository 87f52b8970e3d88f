"""Along whose search_path names are found: nobody's but ours, whatever a database or a role asks for."""

from __future__ import annotations

from contextlib import closing

import pytest

from pgtrickle.catalog.dependencies import forget_dropped, poll_ground
from pgtrickle.catalog.install import install
from pgtrickle.catalog.tables import find
from pgtrickle.commands.define import resume
from pgtrickle.commands.status import history, table_status
from pgtrickle.commands.verify import verify
from pgtrickle.postgres.connection import connect
from tests.fixtures.databases import TRICKLE

pytestmark = pytest.mark.every_postgres

OVERLOADS = (
    "create function {0}.format(text, name, name) returns text language plpgsql as"
    " $$ begin perform mallory.note('format'); return pg_catalog.format($1, $2, $3); end $$",
    "create function {0}.same(regclass, oid) returns boolean language plpgsql as"
    " $$ begin perform mallory.note('operator'); return $1::oid operator(pg_catalog.=) $2; end $$",
    "create operator {0}.= (function = {0}.same, leftarg = regclass, rightarg = oid)",
)
"""They fit calls of ours better than what is built in."""
SHADOWS = (
    "create function mallory.same(oid, oid) returns boolean language plpgsql as"
    " $$ begin perform mallory.note('oid'); return $1 operator(pg_catalog.=) $2; end $$",
    "create operator mallory.= (function = mallory.same, leftarg = oid, rightarg = oid)",
    "create function mallory.same(int, int) returns boolean language plpgsql as"
    " $$ begin perform mallory.note('int'); return $1 operator(pg_catalog.=) $2; end $$",
    "create operator mallory.= (function = mallory.same, leftarg = int, rightarg = int)",
    "create operator mallory.<> (function = mallory.same, leftarg = int, rightarg = int)",
    "create function mallory.to_regclass(text) returns regclass language plpgsql as"
    " $$ begin perform mallory.note('class'); return pg_catalog.to_regclass($1); end $$",
    "create function mallory.current_setting(text) returns text language plpgsql as"
    " $$ begin perform mallory.note('setting'); return pg_catalog.current_setting($1); end $$",
    "create function mallory.pg_is_in_recovery() returns boolean language plpgsql as"
    " $$ begin perform mallory.note('recovery'); return false; end $$",
    "create function mallory.last(boolean) returns boolean language plpgsql as"
    " $$ begin perform mallory.note('aggregate'); return $1; end $$",
    "create aggregate mallory.bool_or(boolean)"
    " (sfunc = pg_catalog.boolor_statefunc, stype = boolean, finalfunc = mallory.last)",
)
"""They come before what is built in, where a path says so."""


def serve(attack):
    """What a sidecar does with a stream table of the attacker's, and when its table is gone."""
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    verify(attack.engine, "mallory.st")
    attack.run("drop table mallory.st")
    with attack.engine.pool.autocommitting() as connection:
        poll_ground(connection, None)
        assert forget_dropped(connection) == ["mallory.st"]


def test_what_fits_better_in_a_schema_of_the_path_is_not_called(attack):
    assert attack.run(*(statement.format("public") for statement in OVERLOADS)) == []
    serve(attack)
    assert attack.succeeded() == []


def test_a_search_path_of_the_database_is_not_ours(attack, database):
    """Who owns a database sets what its sessions begin with; that gives no right to read its tables."""
    attack.admin.execute(f"alter database {database.name} owner to mallory")
    assert attack.run(*(statement.format("mallory") for statement in OVERLOADS), *SHADOWS) == []
    attack.run(f"alter database {database.name} set search_path = mallory, pg_catalog, public")
    serve(attack)
    for role in (TRICKLE, "postgres"):
        with closing(connect(database.dsn(role))) as connection:
            find_nothing(connection)
    with closing(connect(database.dsn(TRICKLE))) as connection:
        install(connection)
        connection.commit()
    assert attack.succeeded() == []


def find_nothing(connection):
    with pytest.raises(Exception, match="there is no stream table"):
        find(connection, "nothing")


def test_a_bare_name_is_found_along_the_path_of_the_login(attack, database):
    assert attack.create("select id, word from mallory.t") is None
    dsn = database.dsn("mallory")
    assert str(table_status(dsn, "st").name) == "mallory.st"
    assert history(dsn, "st") == []
    resume(dsn, "st")
    with closing(connect(database.dsn(TRICKLE))) as connection:
        find_nothing(connection)
