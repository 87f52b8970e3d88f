"""Stable functions of PostgreSQL: only those are taken whose result follows from what pgtrickle sees."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.every_postgres

REVIEWED = """
select p.oid::regprocedure::text from pg_proc p
where p.oid < 16384 and p.provolatile = 's' and pgtrickle_internal.is_known_stable(p.oid)
    and p.proname ~ '^(pg_|has_|txid_|inet_|current|session|system|user|to_reg|version|get|ts_debug|ts_parse)'
order by 1
"""


@pytest.fixture
def seen(source):
    return source("seen(id int, at timestamptz, x xid, type_id oid, types oidvector, word text, note jsonb)")


def create(app, expression: str) -> None:
    app.execute("select pgtrickle.create_stream_table('s', %s)", (f"select id, {expression} as v from seen",))


@pytest.mark.parametrize(
    "expression",
    [
        "getpgusername()",
        "format_type(type_id, null)",
        "oidvectortypes(types)",
        "age(x)",
        "mxid_age(x)",
        "(select max(alias) from ts_debug(word))",
        "(select max(token) from ts_parse('default', word))",
        "(select max(alias) from ts_token_type('default'))",
        "pg_get_userbyid(type_id)",
        "has_table_privilege(word, 'select')",
        "txid_current()",
        "current_setting(word)",
    ],
)
def test_what_depends_on_more_than_its_arguments_is_refused(seen, app, expression):
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="may depend on more than its arguments"):
        create(app, expression)


def test_the_login_of_the_sidecar_is_no_value(seen, app, pg_version):
    if pg_version < 16:
        pytest.skip("SYSTEM_USER came with PostgreSQL 16")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="may depend on more than its arguments"):
        create(app, "system_user")


@pytest.mark.parametrize(
    "expression",
    [
        "age(at)",
        "at::date",
        "at = at::date",
        "at + interval '1 day'",
        "date_trunc('day', at)",
        "to_char(at, 'YYYY')",
        "concat(word, at)",
        "word || id",
        "jsonb_build_object('w', word)",
        "to_tsvector(word)",
        "word @@ 'cats'",
        "(jsonb_populate_record(null::pair, note)).a",
        "make_timestamptz(2020, 1, 1, 0, 0, 0)",
    ],
)
def test_what_the_recorded_settings_decide_is_taken(seen, app, expression):
    app.execute("create type pair as (a int, b date)")
    create(app, expression)


def test_no_function_that_asks_the_server_is_taken(admin):
    """Patterns in the list might let in one that a later version of PostgreSQL has."""
    taken = [name for (name,) in admin.execute(REVIEWED)]
    assert taken == ["get_current_ts_config()", "getdatabaseencoding()", 'pg_typeof("any")']
