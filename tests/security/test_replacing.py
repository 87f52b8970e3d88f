"""Replacing a table or a materialized view, or showing rows of a table, runs no code of other roles."""

from __future__ import annotations

from contextlib import closing
from time import monotonic

import psycopg
import pytest

from pgtrickle.commands.adopt import adopt
from pgtrickle.commands.definitions import plan
from pgtrickle.commands.rows import table_rows
from pgtrickle.interfaces.ddl.definition_files import read_definitions
from pgtrickle.model.errors import PermissionDenied, UntrustedCode
from tests.fixtures.databases import APP, TRICKLE
from tests.security.conftest import MALLORY, SECRET

pytestmark = pytest.mark.every_postgres

# PostgreSQL checks the domain while it parses the constant
VIEW = "create view mallory.reader as select id, '{1}'::mallory.trap[] as numbers from "


@pytest.fixture
def shown(admin: psycopg.Connection, mallory: psycopg.Connection) -> str:
    """What everybody may read of an administrator: a table, and a materialized view over it."""
    admin.execute(
        "create table public.facts(id int primary key, word text);"
        "create materialized view public.shown as select id, word from public.facts;"
        "grant select on public.facts, public.shown to public; grant trigger on public.facts to trickle"
    )
    return "public.shown"


def ran_as(mallory: psycopg.Connection, role: str) -> list[tuple[object, ...]]:
    return mallory.execute("select how, what from mallory.log where who = %s", (role,)).fetchall()


def test_adopting_runs_no_code_of_a_view_of_somebody_else(attack, shown, admin):
    attack.run(f"{VIEW}{shown}", "delete from mallory.log")
    (me,) = admin.execute("select current_user").fetchone()
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match=r"view mallory\.reader"):
        admin.execute("select pgtrickle.adopt_materialized_view(%s)", (shown,))
    assert ran_as(attack.mallory, me) == []
    attack.run(
        "drop view mallory.reader", f"create view mallory.reader as select id + 1 as next from {shown}"
    )
    admin.execute("select pgtrickle.adopt_materialized_view(%s)", (shown,))
    assert ran_as(attack.mallory, me) == []


def test_other_columns_run_no_code_of_a_view_of_somebody_else(attack, shown, admin):
    admin.execute("select pgtrickle.create_stream_table('public.st', 'select id, word from public.facts')")
    admin.execute("grant select on public.st to public")
    attack.run(f"{VIEW} public.st", "delete from mallory.log")
    (me,) = admin.execute("select current_user").fetchone()
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match=r"view mallory\.reader"):
        admin.execute("select pgtrickle.alter_stream_table('public.st', 'select id from public.facts')")
    assert ran_as(attack.mallory, me) == []


TRAPPED = {
    "an index": "create index trap on mallory.st ((mallory.evil('index') + id))",
    "statistics": "create statistics mallory.trap on (mallory.evil('statistics') + id), (id * 2)"
    " from mallory.st",
    "a policy": "alter table mallory.st enable row level security;"
    " create policy trap on mallory.st using (mallory.evil_check(id, 'policy'))",
    "a check": "alter table mallory.st add constraint trap check (id + mallory.evil('check') > 0) not valid",
}


@pytest.mark.parametrize("kind", TRAPPED)
def test_rows_are_shown_without_code_of_the_owner(attack, database, kind):
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    attack.run("grant select on mallory.st to public")
    assert attack.run(TRAPPED[kind]) == []
    with pytest.raises((UntrustedCode, PermissionDenied)) as refusal:
        table_rows(database.dsn(TRICKLE), "mallory.st")
    assert SECRET not in str(refusal.value)
    assert attack.succeeded() == []


def test_who_owns_a_table_sees_its_rows_whatever_is_attached(attack, database):
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    assert (
        attack.run(
            "create function mallory.one() returns int immutable language plpgsql as 'begin return 1; end'",
            "create index fine on mallory.st ((mallory.one() + id))",
        )
        == []
    )
    assert table_rows(database.dsn(MALLORY), "mallory.st").rows == (("1", "one"),)


def test_the_query_of_a_materialized_view_of_somebody_else_is_not_parsed(attack, database, admin):
    statement = VIEW.replace("view", "materialized view") + "mallory.t"
    assert attack.run(statement, "delete from mallory.log") == []
    (me,) = admin.execute("select current_user").fetchone()
    with pytest.raises(PermissionDenied, match="you must own"):
        adopt(database.dsn(me), "mallory.reader", {"refresh_mode": "DIFFERENTIAL"})
    assert ran_as(attack.mallory, me) == []


def test_nobody_puts_a_table_into_the_set_of_definitions_of_somebody_else(attack, database, admin):
    assert attack.create("select id, word from mallory.t") is None
    with attack.mallory.transaction():
        attack.mallory.execute("select pgtrickle_internal.prove_ownership('mallory.st'::regclass)")
        attack.mallory.execute("select pgtrickle_internal.note_set('mallory.st'::regclass, 'shop')")
    attack.run("create view mallory.reader as select id from mallory.st")
    (me,) = admin.execute("select current_user").fetchone()
    assert plan(database.dsn(me), read_definitions(""), "shop") == []
    assert [one.name for one in plan(database.dsn(TRICKLE), read_definitions(""), "shop")] == []


def test_who_adopts_and_does_not_commit_holds_up_no_refresh(attack, database, admin):
    admin.execute(f"grant usage on schema mallory to {APP}")
    attack.run(
        "create materialized view mallory.mv as select id, word from mallory.t",
        f"grant select on mallory.mv, mallory.t to {APP}, {TRICKLE}",
    )
    with closing(database.connect(APP, autocommit=True)) as app:
        for name, source in (("reader", "mallory.mv"), ("bystander", "mallory.t")):
            app.execute(
                "select pgtrickle.create_stream_table(%s, %s, schedule => null, refresh_mode => 'FULL')",
                (f"public.{name}", f"select id, word from {source}"),
            )
    with attack.mallory.transaction(force_rollback=True):
        attack.mallory.execute("select pgtrickle.adopt_materialized_view('mallory.mv')")
        assert attack.refresh("public.bystander") is None
        began = monotonic()
        assert "locked by another session" in (attack.refresh("public.reader") or "")
        assert monotonic() - began < 30
    assert attack.refresh("public.reader") is None
