"""Statements that an administrator has run with the rights of another role, and code that outlives them."""

from __future__ import annotations

import pytest

from pgtrickle.commands.as_owner import execute_as
from pgtrickle.model.errors import UntrustedCode
from pgtrickle.postgres.connection import sql
from tests.fixtures.databases import TRICKLE

pytestmark = pytest.mark.every_postgres

DEFERRED = """
create table mallory.fuse(n int);
create function mallory.burn() returns trigger language plpgsql as $$
begin
    perform mallory.note('at the commit');
    if new.n > 0 then
        {again}
        insert into mallory.fuse values (new.n - 1);
    end if;
    return null;
end $$;
create constraint trigger burn after insert on mallory.fuse deferrable initially deferred
    for each row execute function mallory.burn();
"""
EXCLUDED = """
create table mallory.fuse(n int,
    exclude using btree (mallory.evil(n, 'exclusion') with =) deferrable initially deferred);
create function mallory.defer() returns trigger language plpgsql as $$
begin
    set constraints all deferred;
    insert into mallory.fuse values (1), (2);
    return null;
end $$;
create table mallory.first(n int);
create constraint trigger first after insert on mallory.first deferrable initially deferred
    for each row execute function mallory.defer();
"""


@pytest.fixture
def run_as_mallory(attack, database, admin):
    admin.execute(f"grant mallory to {TRICKLE}")
    yield lambda statement: execute_as(
        database.dsn(TRICKLE), "mallory", sql.SQL(statement).format(), is_kept=True
    )
    # roles belong to the server, which other tests share
    admin.execute(f"revoke mallory from {TRICKLE}")


def test_a_deferred_trigger_that_defers_again_does_not_run_as_the_login_role(attack, run_as_mallory):
    attack.mallory.execute(DEFERRED.format(again="set constraints all deferred;"))
    with pytest.raises(UntrustedCode, match=r"deferrable triggers: burn on mallory\.fuse"):
        run_as_mallory("insert into mallory.fuse values (5)")
    assert attack.succeeded() == []
    assert attack.mallory.execute("select count(*) from mallory.log").fetchone() == (0,)


def test_a_deferred_exclusion_constraint_does_not_run_as_the_login_role(attack, run_as_mallory):
    attack.mallory.execute(EXCLUDED)
    with pytest.raises(UntrustedCode, match=r"mallory\.fuse"):
        run_as_mallory("insert into mallory.first values (1)")
    assert attack.succeeded() == []


def test_a_statement_that_writes_to_other_tables_is_committed(attack, run_as_mallory):
    attack.mallory.execute(
        "create table mallory.kept(id int primary key, parent int references mallory.kept"
        " deferrable initially deferred)"
    )
    run_as_mallory("insert into mallory.kept values (1, 2), (2, 1)")
    assert attack.mallory.execute("select count(*) from mallory.kept").fetchone() == (2,)
