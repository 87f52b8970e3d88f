"""Rights that are revoked, and the stream table itself, with no write afterwards."""

from __future__ import annotations

import psycopg
import pytest

from tests.fixtures.databases import Database

pytestmark = [pytest.mark.every_postgres, pytest.mark.slow]

READER = "reader"


@pytest.fixture
def roles(admin: psycopg.Connection) -> None:
    for role in (READER, "keeper", "crowd"):
        admin.execute(f"do $$ begin create role {role}; exception when duplicate_object then null; end $$")
    admin.execute(f"grant {READER}, keeper to app")
    admin.execute(f"grant create, usage on schema public to {READER}, keeper")
    admin.execute(f"revoke crowd from {READER}")


def test_a_revoked_right_stops_the_stream_table_until_it_is_granted_again(items, ground, app, admin, roles):
    admin.execute("create function twice(n int) returns int immutable language sql return n * 2")
    admin.execute("revoke execute on function twice(int) from public")
    admin.execute(f"grant execute on function twice(int) to {READER}, trickle")
    app.execute("create view seen as select id, note from items")
    app.execute("alter view seen owner to keeper")
    app.execute("grant select on items to keeper")
    app.execute("set role keeper")
    app.execute(f"grant select on seen to {READER}, trickle")
    app.execute("reset role")
    app.execute(f"grant select (id, v) on items to {READER}")
    app.execute(f"set role {READER}")
    app.execute(
        "select pgtrickle.create_stream_table('s',"
        " 'select i.id, twice(i.v) as v, e.note from items i join seen e on e.id = i.id')"
    )
    app.execute("reset role")
    assert ground.poll() == {}
    for revoke, says, grant in (
        (f"revoke select (v) on items from {READER}", "items", f"grant select (v) on items to {READER}"),
        (
            "revoke select on items from keeper",
            "keeper may not select from",
            "grant select on items to keeper",
        ),
        (f"revoke select on seen from {READER}", "seen", f"grant select on seen to {READER}"),
        (
            f"revoke execute on function twice(int) from {READER}",
            "twice",
            f"grant execute on function twice(int) to {READER}",
        ),
        ("revoke select on items from trickle", "trickle may not select", "grant select on items to trickle"),
        (
            "revoke trigger on items from trickle",
            "trickle may not create triggers",
            "grant trigger on items to trickle",
        ),
        (
            "revoke insert on s from trickle",
            "trickle may not write to public.s",
            "grant insert on s to trickle",
        ),
    ):
        found = ground.after(revoke, by=admin)
        assert found.startswith("ERROR ")
        assert says in found
        assert says in str(ground.state()[2])
        assert "ERROR" not in ground.after(grant, by=admin)
        assert ground.state()[2] is None


def test_a_right_by_membership_counts(items, ground, app, admin, roles):
    app.execute("grant select on items to crowd")
    admin.execute(f"grant crowd to {READER}")
    app.execute(f"set role {READER}")
    app.execute("select pgtrickle.create_stream_table('s', 'select id, v from items')")
    app.execute("reset role")
    ground.follow("select id from items", "t")
    found = ground.after(f"revoke crowd from {READER}", by=admin)
    assert found.startswith("ERROR reader may not select from public.items")
    assert ground.state("t") == (False, None, None)
    assert "ERROR" not in ground.after(f"grant crowd to {READER}", by=admin)
    admin.execute(f"alter role {READER} createdb")
    admin.execute("grant keeper to crowd")
    assert ground.poll() == {}
    admin.execute("revoke keeper from crowd")


def test_the_stream_table_itself_is_watched(items, ground, app, admin):
    query = "select id, v from items"
    for statements, says in (
        (["create table child() inherits (s)"], "ERROR a table inherits from public.s"),
        (
            ["create table above(id int, v int)", "alter table s inherit above"],
            "ERROR public.s became a child",
        ),
        (["create rule nothing as on insert to s do instead nothing"], "ERROR public.s has the rule nothing"),
        (["alter table s set unlogged"], "ERROR public.s is no longer logged"),
        (
            ["alter table s alter column v type bigint"],
            "ERROR column v of public.s had type integer and now has type bigint",
        ),
        (["alter table s rename column v to w"], "ERROR column v of public.s is now called w"),
        (["alter table s add column w int"], "ERROR public.s has a column more than its query"),
        (
            ["alter table s drop column v", "alter table s add column v int"],
            "column v of public.s was dropped",
        ),
        (["alter table s alter column v type int using v * 10"], "column v of public.s was rewritten"),
        (
            ["drop trigger pgtrickle_guard on s"],
            "the guard of public.s was switched off, replaced or dropped",
        ),
        (
            ["alter table s disable trigger all", "alter table s enable trigger all"],
            "the guard of public.s was",
        ),
        (["alter table s disable trigger user"], "the guard of public.s was"),
    ):
        ground.follow(query)
        found = ground.after(*statements)
        assert found.startswith(says), (statements, found)
        guard = (
            "select tgenabled from pg_trigger where tgname = 'pgtrickle_guard' and tgrelid = 's'::regclass"
        )
        assert "ERROR" in found or app.execute(guard).fetchone()[0] in ("O", "A")
        app.execute("drop table if exists child, above cascade")
        if app.execute("select to_regclass('s') is not null").fetchone()[0]:
            admin.execute("drop table s cascade")
        ground.connection.execute("select pgtrickle_internal.forget(pgt_id) from pgtrickle.pgt_stream_tables")


def test_a_child_that_leaves_lets_the_stream_table_go_on(items, ground, app):
    ground.follow("select id, v from items")
    assert "inherits from public.s" in ground.after("create table child() inherits (s)")
    assert "ERROR" not in ground.after("alter table child no inherit s")
    assert ground.state()[2] is None


def test_a_renamed_stream_table_stays_the_same(items, ground, app):
    ground.follow("select id, v from items")
    app.execute("alter table s rename to renamed")
    assert ground.poll() == {}


def test_another_owner_must_have_the_rights(items, ground, app, admin, roles):
    ground.follow("select id, v from items")
    assert "reader may not select" in ground.after(f"alter table s owner to {READER}", by=admin)
    assert "ERROR" not in ground.after(f"grant select on items to {READER}")
    owner = "select pg_get_userbyid(pgt_owner) from pgtrickle.pgt_stream_tables"
    assert app.execute(owner).fetchone() == (READER,)


def test_the_guard_refuses_writes_under_replication_too(items, ground, admin, database: Database):
    ground.follow("select id, v from items")
    admin.execute("set session_replication_role = replica")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        admin.execute("insert into s values (1, 1)")
