"""Functions that rely on their caller's search_path are refused when a stream table is created."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.every_postgres

QUERY = "select id, outer_function(id) as value from orders"


@pytest.fixture
def orders(source, admin):
    admin.execute("create schema lib")
    admin.execute("grant usage on schema lib to public")
    admin.execute("create domain lib.score as int")
    admin.execute(
        "create function lib.inner_function(n int) returns int immutable language sql as 'select n'"
    )
    admin.execute(
        "create function lib.same(n int, t text) returns boolean immutable language sql as 'select true'"
    )
    admin.execute("create operator lib.=== (leftarg = int, rightarg = text, function = lib.same)")
    return source("orders(id int)")


def define(admin, body: str, extra: str = "") -> None:
    admin.execute(
        f"create function outer_function(n int) returns int immutable language plpgsql {extra}"
        f" as $$ begin return {body}; end $$"
    )


def create(app) -> None:
    app.execute("set search_path = public, lib")
    app.execute("select pgtrickle.create_stream_table('seen', %s)", (QUERY,))


@pytest.mark.parametrize(
    ("body", "name"),
    [("inner_function(n)", "inner_function()"), ("n::score", "score"), ("(n === 'a')::int", "===")],
)
def test_a_function_that_finds_names_by_the_search_path_is_refused(orders, admin, app, body, name):
    define(admin, body)
    with pytest.raises(
        psycopg.errors.FeatureNotSupported, match=f"uses {name.replace('(', '.').replace(')', '.')}"
    ) as refusal:
        create(app)
    hint = refusal.value.diag.message_hint or ""
    assert "set search_path = public, lib" in hint
    admin.execute("alter function outer_function(int) set search_path = public, lib")
    create(app)


@pytest.mark.parametrize(
    "body",
    [
        "lib.inner_function(n)",
        "n::lib.score",
        "n * 2 -- inner_function(n)",
        "length('score of it''s ===')",
        "abs(n)",
        "(n operator(lib.===) 'a')::int",
    ],
)
def test_a_function_that_names_every_schema_is_taken(orders, admin, app, body):
    define(admin, f"{body}\n")
    create(app)


def test_another_path_leads_to_nothing(orders, admin, app):
    define(admin, "abs(n)")
    admin.execute("create function lib.abs(n int, m int) returns int immutable language sql as 'select n'")
    app.execute("set search_path = public")
    app.execute("select pgtrickle.create_stream_table('seen', %s)", (QUERY,))


def test_the_path_of_the_author_counts_when_a_function_is_replaced(orders, admin, app, database):
    define(admin, "abs(n)")
    create(app)
    define_again = "create or replace function outer_function(n int) returns int immutable language plpgsql"
    admin.execute(f"{define_again} as $$ begin return inner_function(n); end $$")
    with (
        database.connect(autocommit=True) as connection,
        pytest.raises(psycopg.errors.FeatureNotSupported, match="uses inner_function"),
    ):
        connection.execute("select pgtrickle_internal.reanalyse(1, 'a function was replaced')")


def test_a_cast_counts_only_where_the_query_uses_it(admin, app, source, database):
    admin.execute(
        "create schema lib; grant usage on schema lib to public; create type lib.mood as enum ('a')"
    )
    source("feelings(id int, mood lib.mood)")
    app.execute("set search_path = public, lib")
    app.execute("select pgtrickle.create_stream_table('seen', 'select id, mood from feelings')")
    # the body names lib.mood without its schema
    admin.execute("set search_path = public, lib")
    admin.execute(
        "create function lib.mood_text(m mood) returns text immutable language sql"
        " as $$ select case when m = 'a'::mood then 'calm' end $$;"
        "create cast (mood as text) with function lib.mood_text(mood)"
    )
    with database.connect(autocommit=True) as connection:
        connection.execute("select pgtrickle_internal.reanalyse(1, 'a cast was created')")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="uses mood of schema lib"):
        app.execute("select pgtrickle.create_stream_table('other', 'select mood::text as m from feelings')")
