"""What cannot be a stream table is refused with a reason and a hint, and changes nothing."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.model.errors import UnknownStreamTable

CREATE = "select pgtrickle.create_stream_table(%s, %s, %s)"

REFUSED = [
    pytest.param("bad", "selec 1", "1s", "42601", "syntax error", id="a syntax error"),
    pytest.param("bad", "", "1s", "42601", "empty", id="no query"),
    pytest.param("bad", "select nope from orders", "1s", "42703", "nope", id="an unknown column"),
    pytest.param("bad", "select 1 from nope", "1s", "42P01", "nope", id="an unknown table"),
    pytest.param("bad", "select 1; drop table orders", "1s", "42601", "single SELECT", id="two statements"),
    pytest.param("bad", "delete from orders returning id", "1s", "42601", "delete", id="a writing statement"),
    pytest.param("bad", "select id, id from orders", "1s", "42701", "id", id="a column twice"),
    pytest.param("bad", "select from orders", "1s", "42P16", "no columns", id="no columns"),
    pytest.param("bad", "select random() from orders", "1s", "0A000", "random", id="a volatile function"),
    pytest.param("bad", "select id from noisy", "1s", "0A000", "random", id="a volatile function in a view"),
    pytest.param("bad", "select relname from pg_class", "1s", "0A000", "pg_catalog.pg_class", id="a catalog"),
    pytest.param(
        "bad", "select 1 from information_schema.tables", "1s", "0A000", "catalog", id="a catalog view"
    ),
    pytest.param("bad", "select id from scratch", "1s", "0A000", "scratch", id="a temporary table"),
    pytest.param("bad", "select id from fast", "1s", "0A000", "unlogged", id="an unlogged table"),
    pytest.param("bad", "select id from frozen", "1s", "42501", "may not read", id="an unreadable view"),
    pytest.param("bad", "select last_value from counter", "1s", "0A000", "counter", id="a sequence"),
    pytest.param(
        "bad", "select tableoid as t from orders", "1s", "0A000", "system column", id="a system column"
    ),
    pytest.param("bad", "select ctid from orders", "1s", "42701", "ctid", id="a column named like one"),
    pytest.param(
        "bad", "select current_user as me from orders", "1s", "0A000", "CURRENT_USER", id="who is asking"
    ),
    pytest.param("bad", "select id from orders for update", "1s", "0A000", "FOR UPDATE", id="a row lock"),
    pytest.param(
        "bad", "select id from orders tablesample system (5)", "1s", "0A000", "TABLESAMPLE", id="a sample"
    ),
    pytest.param(
        "bad", "select peek(id) from orders", "1s", "0A000", "peek", id="a function that reads tables"
    ),
    pytest.param(
        "bad",
        "select id as a, id as b, count(*) from orders group by grouping sets (a, b)",
        "1s",
        "0A000",
        "when PostgreSQL prints it",
        id="two grouping sets of one text",
    ),
    pytest.param(
        "bad", "select nullif(tag, 'A') from tagged", "1s", "0A000", "prints it", id="an operator not printed"
    ),
    pytest.param(
        "bad",
        "select case tag when 'A' then 1 end from tagged",
        "1s",
        "0A000",
        "prints it",
        id="an operator not printed by CASE",
    ),
    pytest.param(
        "bad",
        "select id from tagged join tagged more using (id, tag)",
        "1s",
        "0A000",
        "prints it",
        id="an operator not printed by USING",
    ),
    pytest.param("bad", "select mine(id) from orders", "1s", "TA003", "mine", id="a function of a user"),
    pytest.param(
        "bad", "select id::picky from orders", "1s", "TA003", "mine", id="a domain checked by a user"
    ),
    pytest.param("bad", "select mysum(id) from orders", "1s", "TA003", "mine", id="an aggregate of a user"),
    pytest.param(
        "bad",
        "select table_to_xml('orders', true, true, '')",
        "1s",
        "0A000",
        "table_to_xml",
        id="a hidden read",
    ),
    pytest.param(
        "bad", "select pgt_id from pgtrickle.pgt_stream_tables", "1s", "0A000", "pgtrickle", id="ourselves"
    ),
    pytest.param("orders", "select id from orders", "1s", "42P07", "orders", id="a name that exists"),
    pytest.param("a.b.c", "select id from orders", "1s", "42602", "a.b.c", id="a name of three parts"),
    pytest.param("bad name", "select id from orders", "1s", "42602", "bad name", id="a name with a blank"),
    pytest.param("", "select id from orders", "1s", "42602", "''", id="no name"),
    pytest.param("x" * 64, "select id from orders", "1s", "42602", "xxx", id="a name too long"),
    pytest.param("nope.bad", "select id from orders", "1s", "3F000", "nope", id="an unknown schema"),
    pytest.param("pgtrickle.bad", "select id from orders", "1s", "3F000", "pgtrickle", id="our schema"),
    pytest.param("bad", "select id from orders", "soon", "TS003", "soon", id="a bad schedule"),
    pytest.param("bad", "select id from orders", "0s", "TS003", "0s", id="a schedule of nothing"),
    pytest.param("bad", "select id from orders", "-5", "TS003", "-5", id="a schedule in the past"),
    pytest.param("bad", "select id from orders", "99ms", "TS003", "100ms", id="a schedule too short"),
    pytest.param("bad", "select id from orders", "٣s", "TS003", "٣s", id="a schedule in other digits"),
    pytest.param("bad", "select id from orders", "61 * * * *", "TS003", "minute '61'", id="a bad minute"),
    pytest.param("bad", "select id from orders", "0 0 31 2 *", "TS003", "never", id="a day that never comes"),
    pytest.param("bad", "select id from orders", "@often", "TS003", "@often", id="an unknown nickname"),
]


@pytest.fixture
def shop(source, app):
    source("orders(id int, amount int)", rows=[(1, 10)])
    for statement in (
        "create domain label as text",
        "create function alike(label, label) returns boolean immutable language sql"
        " as 'select lower($1) operator(pg_catalog.=) lower($2)'",
        "create operator = (leftarg = label, rightarg = label, function = alike)",
        "create table tagged(id int, tag label)",
        "create view noisy as select id, random() as r from orders",
        "create temporary table scratch(id int)",
        "create unlogged table fast(id int)",
        "create materialized view frozen as select 1 as id",
        "create sequence counter",
        "create function peek(int) returns int stable language sql as 'select max(amount) from orders'",
        "create function mine(int, int) returns int immutable language sql as 'select $1'",
        "create function mine(int) returns int immutable language sql as 'select $1'",
        "create domain picky as int check (mine(value) > 0)",
        "create aggregate mysum(int) (sfunc = mine, stype = int)",
    ):
        app.execute(statement)


@pytest.mark.parametrize(("name", "query", "schedule", "sqlstate", "says"), REFUSED)
def test_it_is_refused_and_changes_nothing(shop, app, admin, name, query, schedule, sqlstate, says):
    before = objects(admin)
    with pytest.raises(psycopg.Error) as refusal:
        app.execute(CREATE, (name, query, schedule))
    assert refusal.value.sqlstate == sqlstate
    assert says in str(refusal.value.diag.message_primary)
    # PostgreSQL says where in the query a mistake is, and hints only at some
    assert refusal.value.diag.message_hint or refusal.value.diag.internal_position
    assert objects(admin) == before


@pytest.mark.parametrize("volatility", ["volatile", "stable"])
def test_a_refused_function_comes_with_the_statement_that_declares_it_immutable(shop, app, volatility):
    app.execute(f"create function plain(int) returns int {volatility} language sql as 'select $1'")
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refusal:
        app.execute(CREATE, ("s", "select plain(id) from orders", None))
    hint = refusal.value.diag.message_hint or ""
    assert hint.endswith("alter function public.plain(integer) immutable")
    app.execute(hint[hint.index("alter function") :])
    with pytest.raises(psycopg.Error, match="rights of the sidecar"):
        # what is left is that we do not trust its owner
        app.execute(CREATE, ("s", "select plain(id) from orders", None))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("refresh_mode", "SOMETIMES"),
        ("cdc_mode", "psychic"),
        ("cdc_mode", "wal"),
        ("diamond_consistency", "maybe"),
        ("diamond_schedule_policy", "laziest"),
    ],
)
def test_a_bad_option_is_refused_with_what_is_allowed(shop, app, option, value):
    with pytest.raises(psycopg.Error, match=value) as refusal:
        app.execute(
            f"select pgtrickle.create_stream_table('s', 'select id from orders', {option} => '{value}')"
        )
    assert refusal.value.diag.message_hint


def test_unknown_stream_tables_are_named(app):
    for call in ("drop_stream_table('nope')", "alter_stream_table('nope')", "get_refresh_history('nope')"):
        with pytest.raises(psycopg.Error, match="nope") as refusal:
            app.execute(f"select * from pgtrickle.{call}")
        assert refusal.value.sqlstate == UnknownStreamTable.sqlstate


def test_direct_writes_are_refused_with_a_hint(shop, app, admin):
    app.execute(CREATE, ("s", "select id from orders", None))
    for statement in ("insert into s values (1)", "delete from s", "update s set id = 1", "truncate s"):
        for writer in (app, admin):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=r"public\.s") as refusal:
                writer.execute(statement)
            assert "sources" in (refusal.value.diag.message_hint or "")
    app.execute("set pgtrickle.applying = 'on'")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        app.execute("insert into s values (1)")


def objects(admin: psycopg.Connection) -> list[tuple[str]]:
    """Everything that a half-done creation could have left."""
    return admin.execute(
        "select relname::text from pg_class where relname !~ '^pg_toast' union all"
        " select tgname from pg_trigger union all select proname from pg_proc union all"
        " select pgt_name from pgtrickle.pgt_stream_tables order by 1"
    ).fetchall()
