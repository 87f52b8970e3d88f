"""Nobody gets through pgtrickle what they could not get without it; the sidecar needs no superuser."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from pgtrickle.catalog.dependencies import changes_under, reanalyse
from pgtrickle.catalog.tables import stream_tables
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.model.errors import CommandRefused, HiddenRows, SourceChanged
from tests.fixtures.databases import APP, TRICKLE, Connect, Database

pytestmark = pytest.mark.every_postgres

STRANGER = "stranger"


@pytest.fixture
def stranger(admin: psycopg.Connection, database: Database, connect: Connect) -> psycopg.Connection:
    """Somebody who may create tables and nothing else."""
    admin.execute(
        f"do $$ begin create role {STRANGER} login password '{database.server.password}';"
        " exception when duplicate_object then null; end $$"
    )
    admin.execute(f"grant create on schema public to {STRANGER}")
    connection = connect(STRANGER)
    connection.autocommit = True
    return connection


@pytest.fixture
def secrets(source: Callable[..., object]) -> None:
    source("secrets(id int primary key, word text)", rows=[(1, "abracadabra")])


def refused(connection: psycopg.Connection, statement: str, *says: str) -> str:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(statement)
    for text in says:
        assert text in str(refusal.value)
    assert refusal.value.diag.message_hint
    return str(refusal.value.sqlstate)


def test_the_sidecar_is_nobody_special(admin):
    row = admin.execute(
        "select rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication,"
        " exists (select from pg_auth_members where member = r.oid) from pg_roles r where rolname = %s",
        (TRICKLE,),
    ).fetchone()
    assert row == (False, False)


def test_who_may_not_select_may_not_create(secrets, stranger):
    query = "select pgtrickle.create_stream_table('mine', 'select word from secrets')"
    assert refused(stranger, query, "permission denied", "secrets") == "42501"


def test_who_may_select_one_column_gets_one_column(secrets, stranger, app):
    app.execute(f"grant select (id) on secrets to {STRANGER}")
    refused(stranger, "select pgtrickle.create_stream_table('a', 'select word from secrets')", "permission")
    refused(stranger, "select pgtrickle.create_stream_table('a', 'select s from secrets s')", "permission")
    stranger.execute("select pgtrickle.create_stream_table('b', 'select id from secrets')")


def test_a_view_lets_through_what_its_owner_may_see(secrets, stranger, app):
    app.execute("create view open_secrets as select id from secrets")
    app.execute(f"grant select on open_secrets to {STRANGER}")
    stranger.execute("select pgtrickle.create_stream_table('a', 'select id from open_secrets')")


def test_a_stream_table_belongs_to_its_creator(secrets, stranger, app):
    app.execute("select pgtrickle.create_stream_table('words', 'select word from secrets')")
    row = app.execute("select pg_get_userbyid(relowner) from pg_class where relname = 'words'").fetchone()
    assert row == (APP,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("select * from words")


def test_a_source_the_sidecar_may_not_follow_is_refused_with_the_grant(app):
    app.execute("create table hidden(id int)")
    query = "select pgtrickle.create_stream_table('a', 'select id from hidden')"
    assert (
        refused(
            app,
            query,
            "may not capture the changes of",
            f"grant select, trigger on public.hidden to {TRICKLE}",
        )
        == "42501"
    )
    app.execute(f"grant select on hidden to {TRICKLE}")
    refused(app, query, "may not capture the changes of")
    app.execute(f"grant trigger on hidden to {TRICKLE}")
    app.execute(query)


def test_a_source_with_row_security_is_refused(secrets, app, stranger):
    app.execute("alter table secrets enable row level security")
    app.execute(f"grant select on secrets to {STRANGER}")
    query = "select pgtrickle.create_stream_table('a', 'select id from secrets')"
    assert refused(app, query, "row-level security", TRICKLE) == HiddenRows.sqlstate
    assert refused(stranger, query, "row-level security", STRANGER) == HiddenRows.sqlstate


def test_row_security_switched_on_later_is_noticed(secrets, app, connection):
    app.execute("select pgtrickle.create_stream_table('a', 'select id from secrets')")
    app.execute("alter table secrets enable row level security")
    (table,) = stream_tables(connection)
    change, *_ = changes_under(connection, table.id)
    assert "row-level security" in change.what
    with pytest.raises(SourceChanged, match="hides rows"):
        reanalyse(connection, table.id, change.what)


def test_nobody_else_reads_buffers_or_state(secrets, app, stranger):
    app.execute("select pgtrickle.create_stream_table('a', 'select word from secrets')")
    row = app.execute("select source_relid from pgtrickle.pgt_sources").fetchone()
    assert row is not None
    for someone in (app, stranger):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            someone.execute(f"select * from pgtrickle_changes.changes_{row[0]}_0")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            someone.execute("create table pgtrickle_state.mine(id int)")


def test_nobody_else_writes_the_catalog(app):
    for statement in (
        "update pgtrickle.pgt_stream_tables set status = 'ACTIVE'",
        "insert into pgtrickle.pgt_sources(source_relid, trigger_level) values (1, 'row')",
        "delete from pgtrickle.pgt_refresh_history",
        "select last_error from pgtrickle.pgt_stream_tables",
        "select error_message from pgtrickle.pgt_refresh_history",
        "select pgtrickle_internal.capture_source('pg_class'::regclass, '{}')",
        "select pgtrickle_internal.adopt_query(1, 1)",
        "select pgtrickle_internal.store_options(1, '{}')",
        "select pgtrickle_internal.release_source(1)",
        "select pgtrickle_internal.rotate(1, 0)",
        "select pgtrickle_internal.reanalyse(1, '')",
        "select pgtrickle_internal.drop_state(1)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute(statement)


def test_only_the_owner_alters_drops_and_refreshes(secrets, app, stranger):
    app.execute("select pgtrickle.create_stream_table('a', 'select word from secrets')")
    for call in (
        "alter_stream_table('a', schedule => '5s')",
        "alter_stream_table('a', status => 'SUSPENDED')",
        "resume_stream_table('a')",
        "refresh_stream_table('a')",
    ):
        assert refused(stranger, f"select pgtrickle.{call}", "owner") == "42501"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("select pgtrickle.drop_stream_table('a')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("call pgtrickle.refresh_and_wait('a', '1 ms')")


def test_direct_calls_of_the_privileged_functions_are_refused(secrets, app, stranger):
    app.execute("select pgtrickle.create_stream_table('a', 'select word from secrets')")
    stranger.execute("create temporary view leak as select 1 as word")
    stranger.execute("create table trap(word text)")
    for call in (
        "pgtrickle_internal.register('leak'::regclass, 'trap'::regclass, '{}', '{}')",
        "pgtrickle_internal.register('leak'::regclass, 'a'::regclass, '{}', '{}')",
        "pgtrickle_internal.change_query('a'::regclass, 'leak'::regclass, '{}')",
        "pgtrickle_internal.change_options('a'::regclass, '{\"schedule\": \"1s\"}')",
        "pgtrickle_internal.change_status('a'::regclass, 'SUSPENDED')",
        "pgtrickle_internal.forget(1)",
        "pgtrickle_internal.request_refresh(1)",
    ):
        assert refused(stranger, f"select {call}") in ("42501", "55000")


def test_a_proof_of_one_table_proves_nothing_of_another(secrets, app, stranger):
    """A view over secrets, though the stranger can make one, must not be read for the stranger."""
    stranger.execute("create table trap(word text)")
    stranger.execute("create temporary view leak as select word from secrets")
    stranger.execute(
        "create trigger pgtrickle_guard before insert or update or delete or truncate on trap"
        " for each statement execute function pgtrickle.refuse_direct_write()"
    )
    stranger.execute("begin")
    stranger.execute("select pgtrickle_internal.prove_ownership('trap'::regclass)")
    register = "select pgtrickle_internal.register('leak'::regclass, 'trap'::regclass, '{}', '{}')"
    assert refused(stranger, register, "permission denied", "secrets") == "42501"
    stranger.execute("rollback")


def test_errors_are_shown_to_the_owner_alone(secrets, app, stranger, connection):
    app.execute("select pgtrickle.create_stream_table('a', 'select word from secrets')")
    connection.execute("update pgtrickle.pgt_stream_tables set last_error = 'abracadabra'")
    connection.commit()
    look = "select last_error from pgtrickle.stream_tables_info"
    assert app.execute(look).fetchone() == ("abracadabra",)
    assert stranger.execute(look).fetchone() == (None,)


def test_code_that_the_owner_attaches_does_not_run_as_the_sidecar(secrets, app, admin, connection):
    app.execute("select pgtrickle.create_stream_table('a', 'select word from secrets')")
    (table,) = stream_tables(connection)
    lock_for_apply(connection, table)
    connection.commit()
    app.execute("create function spy() returns trigger language plpgsql as 'begin return null; end'")
    app.execute("create trigger spy after insert on a for each statement execute function spy()")
    with pytest.raises(CommandRefused, match="spy"):
        lock_for_apply(connection, table)
    connection.rollback()
    # as its owner it would still share our session, and could leave another search_path behind
    admin.execute("alter function spy() security definer")
    with pytest.raises(CommandRefused, match="spy"):
        lock_for_apply(connection, table)
    connection.rollback()
    admin.execute(f"alter function spy() owner to {TRICKLE}")
    lock_for_apply(connection, table)
    connection.rollback()
    app.execute("create function check_it(text) returns boolean immutable language sql as 'select true'")
    app.execute("alter table a add check (check_it(word))")
    with pytest.raises(CommandRefused, match="check_it"):
        lock_for_apply(connection, table)


def test_functions_of_an_administrator_may_be_used(secrets, app, admin):
    admin.execute("create function shout(text) returns text immutable language sql as 'select upper($1)'")
    app.execute("select pgtrickle.create_stream_table('a', 'select shout(word) as loud from secrets')")
    assert app.execute("select source_table, source_type from pgtrickle.list_sources('a')").fetchall() == [
        ("public.shout(text)", "function"),
        ("public.secrets", "table"),
    ]
