"""Every function that anybody may call is safe under any arguments, in anybody's session."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from tests.fixtures.databases import APP, TRICKLE
from tests.security.conftest import MALLORY, SECRET

pytestmark = pytest.mark.every_postgres

DEFINERS = {
    "ask_for_repair",
    "change_options",
    "change_query",
    "change_status",
    "check_candidate",
    "hold_readers",
    "hold_table",
    "is_followed_elsewhere",
    "note_always",
    "note_enabled",
    "note_name",
    "note_set",
    "pending_counts",
    "register",
    "register_adopted",
    "replace_table",
    "shown_times",
    "shown_until",
    "untrusted_of",
}
"""What runs as the sidecar's role and may be called by anybody; a new one needs a test here."""


def test_few_functions_run_as_the_sidecar_for_everybody(admin, connection):
    rows = admin.execute(
        "select p.proname from pg_proc p where p.pronamespace::regnamespace::text ~ '^pgtrickle'"
        " and p.prosecdef and has_function_privilege('public', p.oid, 'EXECUTE')"
    ).fetchall()
    assert {name for (name,) in rows} == DEFINERS


def test_every_function_with_rights_of_its_own_pins_its_settings(admin):
    rows = admin.execute(
        "select p.oid::regprocedure::text from pg_proc p"
        " where p.pronamespace in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace) and"
        " p.prosecdef and not p.proconfig @>"
        " array['search_path=pg_catalog, pg_temp', 'standard_conforming_strings=on']"
    ).fetchall()
    assert rows == []


def test_whether_a_source_is_followed_elsewhere_says_nothing_of_who_follows_it(admin, app):
    result = admin.execute(
        "select prorettype::regtype::text from pg_proc where proname = 'is_followed_elsewhere'"
    ).fetchone()
    assert result == ("boolean",)
    assert app.execute("select pgtrickle_internal.is_followed_elsewhere(0)").fetchone() == (False,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute("select * from pgtrickle.pgt_remote_readers")


def test_no_argument_of_a_definer_is_sql(admin):
    """What they are given are ids, and options that are checked value by value."""
    rows = admin.execute(
        "select p.proname, pg_get_function_identity_arguments(p.oid) from pg_proc p"
        " where p.pronamespace in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace) and"
        " p.prosecdef"
        " and has_function_privilege('public', p.oid, 'EXECUTE') order by 1"
    ).fetchall()
    assert dict(rows) == {
        "ask_for_repair": "relation_id oid",
        "change_options": "relation_id oid, options jsonb",
        "change_query": "relation_id oid, query_view oid, path name[]",
        "change_status": "relation_id oid, status text",
        "check_candidate": "query_view oid",
        "hold_readers": "replacement oid, adopted oid",
        "hold_table": "relation_id oid",
        "is_followed_elsewhere": "source oid",
        "note_always": "source oid",
        "note_enabled": "relation_id oid",
        "note_name": "relation_id oid",
        "note_set": "relation_id oid, set_name text",
        "pending_counts": "tables bigint[]",
        "register": "query_view oid, relation_id oid, options jsonb, path name[]",
        "register_adopted": "query_view oid, relation_id oid, adopted oid, options jsonb, path name[]",
        "replace_table": "old oid, replacement oid, query_view oid, path name[]",
        "shown_times": "tables bigint[]",
        "shown_until": "id bigint, is_copy boolean",
        "untrusted_of": "relation_id oid, reader oid",
    }


@pytest.fixture
def victim(attack, database):
    """A stream table of somebody else's over the secret."""
    attack.admin.execute(f"grant usage on schema vault to {APP}; grant select on vault.secrets to {APP}")
    with closing(database.connect(APP, autocommit=True)) as connection:
        connection.execute(
            "select pgtrickle.create_stream_table('public.victim', 'select word from vault.secrets',"
            " schedule => null, refresh_mode => 'FULL')"
        )
        yield connection


def test_definers_refuse_any_arguments_from_others(attack, victim):
    attack.run("create temporary view leak as select word from vault.secrets")
    attack.run(
        "create table mallory.fake(word text)",
        "create trigger pgtrickle_guard before insert on mallory.fake"
        " for each statement execute function pgtrickle.refuse_direct_write()",
    )
    relations = ("null", "0", "1259", "'public.victim'::regclass", "'mallory.fake'::regclass", "4294967295")
    views = (
        "null",
        "'pg_temp.leak'::regclass",
        "'pg_catalog.pg_class'::regclass",
        "'public.victim'::regclass",
    )
    options = (
        "null",
        "'{}'",
        "'[]'",
        "'\"x\"'",
        '\'{"schedule": "1s", "pgt_owner": 10, "status": "ACTIVE"}\'',
    )
    calls = [
        *(
            f"pgtrickle_internal.register({v}, {r}, {o}, null)"
            for v in views
            for r in relations
            for o in options
        ),
        *(f"pgtrickle_internal.change_query({r}, {v}, null)" for r in relations for v in views),
        *(f"pgtrickle_internal.change_options({r}, {o})" for r in relations for o in options),
        *(f"pgtrickle_internal.change_status({r}, 'SUSPENDED')" for r in relations),
        *(f"pgtrickle_internal.ask_for_repair({r})" for r in relations),
        *(f"note_enabled({r})" for r in relations),
        *(f"pgtrickle_internal.note_set({r}, 'theirs')" for r in relations),
        *(f"pgtrickle_internal.check_candidate({v})" for v in views),
        *(f"pgtrickle_internal.hold_table({r})" for r in relations),
        *(f"pgtrickle_internal.hold_readers({r}, {other})" for r in relations for other in relations),
        *(
            f"pgtrickle_internal.replace_table({r}, {other}, {v}, null)"
            for r in relations
            for other in relations
            for v in views
        ),
        *(
            f"pgtrickle_internal.register_adopted({v}, {r}, {other}, {o}, null)"
            for v in views
            for r in relations
            for other in relations
            for o in options
        ),
    ]
    accepted = [call for call in calls if not attack.run(f"select {call}")]
    assert accepted == []
    assert attack.run("select pgtrickle_internal.forget(1)")
    # these have nothing to refuse, and do nothing
    attack.run(*(f"select pgtrickle_internal.forget({n})" for n in ("null", "-1", "9223372036854775807")))
    attack.run(*(f"select pgtrickle_internal.note_always({r})" for r in relations))
    attack.run(*(f"select pgtrickle_internal.note_name({r})" for r in relations))
    attack.run(*(f"select pgtrickle_internal.untrusted_of({r}, {v})" for r in relations for v in views))
    ids = ("null", "0", "1", "-1", "9223372036854775807")
    copies = ("null", "true", "false")
    calls = [f"select pgtrickle_internal.shown_until({n}, {copy})" for n in ids for copy in copies]
    assert attack.run(*calls) == []
    for function in ("shown_times", "pending_counts"):
        arrays = ("null", "'{}'", "'{null}'", "'{0,1,-1,9223372036854775807}'", "'{{1},{1}}'")
        assert attack.run(*(f"select * from pgtrickle_internal.{function}({a})" for a in arrays)) == []
    assert victim.execute("select status, schedule from pgtrickle.stream_tables_info").fetchall() == [
        ("INITIALIZING", None)
    ]
    assert attack.refresh("public.victim") is None
    assert attack.succeeded() == []


def test_a_view_of_another_session_or_owner_is_no_query(attack, victim):
    attack.run("create view mallory.lasting as select word from vault.secrets")
    attack.run(
        "create table mallory.fake(word text)",
        "create trigger pgtrickle_guard before insert or update or delete or truncate on mallory.fake"
        " for each statement execute function pgtrickle.refuse_direct_write()",
        "begin",
        "select pgtrickle_internal.prove_ownership('mallory.fake'::regclass)",
    )
    assert attack.run(
        "select pgtrickle_internal.register('mallory.lasting'::regclass, 'mallory.fake'::regclass, '{}')"
    )
    attack.run("rollback")
    assert attack.succeeded() == []


def test_a_proof_of_ownership_serves_once(attack, victim):
    """Code of others that runs later in the owner's transaction does not profit from it."""
    attack.run(
        "create function mallory.later() returns void security definer language plpgsql as"
        " $$ begin perform pgtrickle_internal.change_status('public.victim'::regclass, 'SUSPENDED'); end $$",
    )
    victim.execute("begin")
    victim.execute("select pgtrickle.alter_stream_table('public.victim', schedule => '1h')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        victim.execute("select mallory.later()")
    victim.execute("rollback")


def test_answers_are_for_those_who_may_refresh(attack, victim):
    victim.execute("select pgtrickle_internal.request_refresh(1)")
    attack.admin.execute(
        "update pgtrickle.pgt_refresh_requests set answered_at = now(), error_message = %s", (SECRET,)
    )
    asked = "select pgtrickle_internal.answer_to(1)"
    assert victim.execute(asked).fetchone() == (SECRET,)
    assert attack.mallory.execute(asked).fetchone() == (None,)
    assert attack.run("insert into pgtrickle_internal.own_requests (pgt_id) values (1)")
    # a function in the condition must not see rows before they are sorted out
    attack.run(
        "create function mallory.peek(text) returns boolean cost 0.0001 language plpgsql"
        " as $$ begin insert into mallory.log values (current_user, 'peek', $1); return true; end $$"
    )
    attack.run("select * from pgtrickle_internal.own_requests where mallory.peek(error_message)")
    assert attack.succeeded() == []


def test_the_rights_of_a_session_are_not_those_of_the_code_in_it(attack, victim, database):
    """Whoever calls a function of the attacker's that runs as its owner lends it no rights in pgtrickle."""
    attack.run(
        "create function mallory.borrow() returns text security definer language plpgsql as $$ begin"
        " begin perform pgtrickle.drain(0); exception when insufficient_privilege then null; end;"
        " begin perform pgtrickle.gate_source('vault.secrets'); exception when others then null; end;"
        " begin perform pgtrickle_internal.request_refresh(1); exception when insufficient_privilege then"
        " null; end;"
        " begin insert into mallory.log values (current_user, 'answer', pgtrickle_internal.answer_to(1));"
        " exception when others then null; end;"
        " return 'done'; end $$"
    )
    attack.admin.execute(
        "insert into pgtrickle.pgt_refresh_requests (pgt_id, answered_at, error_message)"
        " values (1, now(), %s)",
        (SECRET,),
    )
    for role in (TRICKLE, APP, "postgres"):
        with closing(database.connect(role, autocommit=True)) as session:
            session.execute("select mallory.borrow()")
    for what in ("pgt_drain", "pgt_gates"):
        assert attack.admin.execute(f"select count(*) from pgtrickle.{what}").fetchone() == (0,)
    assert attack.admin.execute("select count(*) from pgtrickle.pgt_refresh_requests").fetchone() == (1,)
    assert attack.succeeded() == []


def test_others_see_no_reason_and_no_error(attack, victim):
    assert attack.refresh("public.victim") is None
    attack.admin.execute("update pgtrickle.pgt_refresh_history set reason = %s", (SECRET,))
    attack.admin.execute("update pgtrickle.pgt_refresh_history set error_message = %s", (SECRET,))
    attack.admin.execute("update pgtrickle.pgt_stream_tables set last_error = %s", (SECRET,))
    attack.admin.execute("update pgtrickle.pgt_stream_tables set reinit_reason = %s", (SECRET,))
    assert victim.execute("select reason from pgtrickle.visible_history").fetchone() == (SECRET,)
    assert attack.succeeded() == []


def test_nobody_else_calls_what_is_not_public(attack):
    """The list in grants.sql is the whole surface."""
    rows = attack.mallory.execute(
        "select p.oid::regprocedure::text from pg_proc p where p.pronamespace in"
        " ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace)"
        " and has_function_privilege(p.oid, 'EXECUTE') and p.proname = any (%s)",
        (
            [
                "capture_source",
                "adopt_query",
                "reanalyse",
                "view_of_stored",
                "emit_alert",
                "store_options",
                "check_ownership",
                "drop_state",
                "release_source",
                "repair_source",
                "note_rights",
                "is_altered",
            ],
        ),
    ).fetchall()
    assert rows == []
    assert attack.run("select * from pgtrickle_changes.touched_0")
    assert attack.run("select payload from pgtrickle.pgt_compiled")
    assert attack.run(f"set role {TRICKLE}")
    assert attack.mallory.execute("select current_user").fetchone() == (MALLORY,)


def test_what_is_left_of_a_stream_table_is_for_its_owner_to_remove(attack, victim):
    """A restore drops a table and creates it again: until it is bound, the definition is all there is."""
    victim.execute("drop table public.victim; create table public.victim(word text)")
    assert "you must own" in str(attack.run("select pgtrickle_internal.forget(1)"))
    attack.run(
        "delete from pgtrickle_internal.own_remains", "select pgtrickle.drop_stream_table('public.victim')"
    )
    assert attack.mallory.execute("select count(*) from pgtrickle.pgt_stream_tables").fetchone() == (1,)
    victim.execute("select pgtrickle.drop_stream_table('public.victim')")
    left = "select count(*) from pgtrickle.pgt_sources"
    assert attack.mallory.execute(left).fetchone() == (0,)


def test_looking_at_buffers_leaves_no_lock_on_them(attack, victim):
    """A lock would last as long as the transaction, and nobody could empty the buffers of all sources."""
    attack.mallory.execute("begin")
    assert attack.mallory.execute("select count(*) from pgtrickle.change_buffer_sizes()").fetchone() == (1,)
    locked = attack.admin.execute(
        "select l.relation::regclass::text from pg_locks l join pg_stat_activity a on a.pid = l.pid"
        " join pg_class c on c.oid = l.relation and c.relnamespace = 'pgtrickle_changes'::regnamespace"
        " where a.usename = %s",
        (MALLORY,),
    ).fetchall()
    attack.mallory.execute("rollback")
    assert locked == []


def test_errors_are_for_who_owns_the_table_now(attack, victim, database):
    attack.admin.execute(
        f"grant usage on schema vault to {MALLORY}; grant select on vault.secrets to {MALLORY}"
    )
    assert attack.create("select word from vault.secrets") is None
    assert attack.refresh() is None
    attack.admin.execute(f"alter table mallory.st owner to {APP}")
    attack.admin.execute("truncate mallory.log")
    attack.admin.execute("update pgtrickle.pgt_stream_tables set last_error = %s", (SECRET,))
    attack.admin.execute("update pgtrickle.pgt_refresh_history set error_message = %s", (SECRET,))
    attack.admin.execute("update pgtrickle.pgt_refresh_history set reason = %s", (SECRET,))
    assert victim.execute("select reason from pgtrickle.visible_history").fetchone() == (SECRET,)
    assert attack.succeeded() == []


def test_a_proof_cannot_be_left_for_a_transaction_to_come(attack, victim, admin, database):
    """A former owner may guess the id of a transaction in which a proof written earlier would count."""
    attack.run("select pgtrickle.create_stream_table('mallory.own', 'select id from mallory.t')")
    with closing(database.connect(MALLORY, autocommit=False)) as mallory:
        first = int(mallory.execute("select pg_current_xact_id()::text").fetchone()[0])
        mallory.execute(
            "comment on trigger pgtrickle_guard on mallory.own"
            f" is 'last defined in transaction {first + 3}, x'"
        )
        mallory.commit()
        # the second one hands the table over
        admin.execute(f"alter table mallory.own owner to {APP}")
        (now,) = mallory.execute("select pg_current_xact_id()::text").fetchone()
        mallory.rollback()
        while int(now) < first + 3:
            (now,) = mallory.execute("select pg_current_xact_id()::text").fetchone()
            if int(now) < first + 3:
                mallory.rollback()
        assert int(now) == first + 3
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="did not start this"):
            mallory.execute("select pgtrickle_internal.change_status('mallory.own'::regclass, 'SUSPENDED')")


def test_an_owner_cannot_put_a_table_in_the_place_of_somebody_elses(attack, victim):
    """A proof for a table of one's own opens neither another stream table nor a materialized view."""
    attack.admin.execute("create materialized view public.others as select 1 as word")
    attack.run(
        "create table mallory.fake(word text)",
        "create trigger pgtrickle_guard before insert or update or delete or truncate on mallory.fake"
        " for each statement execute function pgtrickle.refuse_direct_write()",
        "create temporary view own as select 'x' as word",
        "begin",
        "select pgtrickle_internal.prove_ownership('mallory.fake'::regclass)",
    )
    fake, view = "'mallory.fake'::regclass", "'pg_temp.own'::regclass"
    for call in (
        f"replace_table('public.victim'::regclass, {fake}, {view}, null)",
        f"replace_table({fake}, {fake}, {view}, null)",
        f"hold_readers({fake}, 'public.others'::regclass)",
        f"hold_readers({fake}, 'public.victim'::regclass)",
        f"register_adopted({view}, {fake}, 'public.others'::regclass, '{{}}', null)",
    ):
        assert attack.run("savepoint s", f"select pgtrickle_internal.{call}", "rollback to s"), call
    attack.run("rollback")
    assert attack.succeeded() == []
