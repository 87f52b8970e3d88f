"""Views, functions, types, casts, operators and collations below a stream table, with no write afterwards."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = [pytest.mark.every_postgres, pytest.mark.slow]


def test_a_replaced_view_loads_anew_and_one_with_the_same_text_does_nothing(items, ground, app):
    app.execute("create view low as select id, v from items where v < 15")
    app.execute("create view lower as select id from low")
    app.execute("grant select on low, lower to trickle")
    ground.follow("select id from lower")
    app.execute("create or replace view low as select   id, v from items where v < 15")
    app.execute("comment on view low is 'nothing'")
    app.execute("grant select on low to public")
    assert ground.poll() == {}
    found = ground.after("create or replace view low as select id, v from items where v < 25")
    assert found == "view public.low was replaced"
    assert "alter view" not in ground.after("alter view low set (security_barrier = true)")


def test_columns_of_a_view_that_change_their_names_load_anew(items, ground, app):
    """Its rule stays the same, but the query reads another column under the same name."""
    app.execute("create view low as select id, v, id * 2 as w from items")
    app.execute("create view lower as select id, v from low")
    app.execute("grant select on low, lower to trickle")
    ground.follow("select id, v from lower")
    # the view between them follows by itself
    assert ground.after("alter view low rename column v to x") == (
        "column v of view public.low is now called x"
    )
    with app.transaction():
        app.execute("alter view lower rename column id to other")
        app.execute("alter view lower rename column v to id")
        app.execute("alter view lower rename column other to v")
    assert "column id of view public.lower is now called v" in ground.poll()["s"]
    found = ground.after("alter view lower rename column v to w")
    assert found.startswith("ERROR column v of view public.lower is now called w")
    assert "no longer true" in ground.after("alter view lower rename column w to v")


def test_functions_and_what_they_call_are_watched(items, ground, admin):
    """A body that is stored as text calls what it names before a parenthesis."""
    admin.execute(
        "create function deep(n int) returns int immutable language sql return n + 1;"
        "create function middle(n int) returns int immutable language plpgsql"
        " as 'begin return public.deep(n); end';"
        "create function top(n int) returns int immutable language sql as 'select public.middle($1)';"
        "create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '0')"
    )
    ground.follow("select id, top(v) as v, (select total(x) from unnest(array[v]) x) as w from items")
    for statement, says in (
        (
            "create or replace function deep(n int) returns int immutable language sql return n + 2",
            "deep(integer)",
        ),
        (
            "create or replace function middle(n int) returns int immutable language plpgsql"
            " as 'begin return public.deep(n) * 2; end'",
            "middle(integer)",
        ),
        ("alter function top(int) strict", "top(integer)"),
        (
            "create or replace aggregate total(int) (sfunc = int4pl, stype = int, initcond = '5')",
            "total(integer)",
        ),
    ):
        assert f"function {says} was replaced" in ground.after(statement, by=admin).replace("public.", "")
    admin.execute("comment on function top(int) is 'nothing'")
    admin.execute("alter function top(int) cost 10")
    admin.execute("create or replace function deep(n int) returns int immutable language sql return n + 2")
    assert ground.poll() == {}
    # a function of the same name may fit better when the query is parsed again
    found = ground.after(
        "create function top(n bigint) returns int immutable language sql return 0", by=admin
    )
    assert "a function with the name of one that the query calls was created" in found
    # so may one that comes from another schema
    admin.execute(
        "create schema aside;"
        "create function aside.top(n smallint) returns int immutable language sql return 5"
    )
    ground.poll()
    found = ground.after("alter function aside.top(smallint) set schema public", by=admin)
    assert "a function with the name of one that the query calls was created, moved" in found


def test_what_a_body_that_is_stored_as_text_uses_is_watched(ground, app, admin, source):
    """Also types and operators, of which PostgreSQL records nothing."""
    app.execute("create type mood as enum ('sad', 'ok')")
    app.execute("create type pair as (a int, b int)")
    app.execute("create domain small as int check (value < 10)")
    source("shape(a int)")
    source("numbers(id int primary key)")
    admin.execute(
        "create function multiply(int, int) returns int immutable language sql return $1 * $2;"
        "create operator *** (leftarg = int, rightarg = int, function = multiply);"
        "create function deep(n int) returns int immutable language sql return n;"
        "create function words(n int) returns text immutable language sql"
        " as $$ select enum_range(null::public.Mood)::text || n $$;"
        "create function parts(n int) returns text immutable language plpgsql as $$"
        " declare p public.pair; r public.shape%rowtype; s public.small := 1; begin p.a := n;"
        " return to_jsonb(p)::text || to_jsonb(r)::text"
        " || public.deep /* between */ (n operator(public.***) 1); end $$"
    )
    ground.follow("select id, words(id) as w, parts(id) as p from numbers")
    for statement, says in (
        ("alter type mood rename value 'sad' to 'low'", "type public.mood was altered (labels)"),
        ("alter type pair add attribute c int", "type public.pair was altered (attributes)"),
        ("alter table shape add column b int", "type public.shape was altered (attributes)"),
        ("alter domain small drop constraint small_check", "type public.small was altered (constraints)"),
    ):
        assert says in ground.after(statement)
    for function in ("multiply(int, int)", "deep(int)"):
        statement = f"create or replace function {function} returns int immutable language sql return 8"
        assert "was replaced" in ground.after(statement.replace("deep(int)", "deep(n int)"), by=admin)


def test_configurations_of_text_search_are_watched(ground, admin, source):
    admin.execute("create text search configuration words (copy = pg_catalog.english)")
    admin.execute("create text search dictionary plain (template = pg_catalog.simple)")
    source("pages(id int primary key, t text)")
    admin.execute(
        "create function lexemes(t text) returns text[] immutable language sql"
        " as $$ select tsvector_to_array(to_tsvector('public.words', t)) $$"
    )
    ground.follow("select id, to_tsvector('public.words', t)::text as w from pages")
    ground.follow("select id, lexemes(t) as w from pages", "in_a_body")
    ground.follow("select id from pages where t @@ 'cats'", "by_texts")
    ground.follow("select id, lower(t) as w from pages", "without")
    for statement in (
        "alter text search configuration words alter mapping for asciiword with simple",
        "alter text search dictionary plain (accept = false)",
        "alter text search configuration pg_catalog.english alter mapping for asciiword with simple",
    ):
        admin.execute(statement)
        says = "a text search configuration or dictionary was created, altered or dropped"
        assert (statement, ground.poll()) == (
            statement,
            {"s": says, "in_a_body": says, "by_texts": says},
        )
    admin.execute("comment on text search configuration words is 'nothing'")
    admin.execute("alter text search configuration words owner to app")
    assert ground.poll() == {}


def test_a_function_replaced_in_the_transaction_of_the_creation_is_noticed(items, ground, admin):
    """Its row keeps its xmin then."""
    function = "create or replace function twice(n int) returns int immutable language sql return n * {}"
    with admin.transaction():
        admin.execute(function.format(2))
        admin.execute("grant select on items to postgres")
        admin.execute("select pgtrickle.create_stream_table('s', 'select id, twice(v) as v from items')")
        admin.execute(function.format(3))
    assert ground.poll()["s"] == "function public.twice(integer) was replaced"


def test_a_function_that_reads_a_table_is_refused(items, ground, app, admin, source):
    source("rates(id int primary key, rate int)")
    for body in (
        "language sql return (select max(rate) from public.rates)",
        "language sql as 'select max(rate) from rates'",
        "language plpgsql as 'begin return (select max(r.rate) from only rates r); end'",
        "language plpgsql as 'declare found int; begin select rate into found from generate_series(1, 2) g,"
        ' public."rates"; return found; end\'',
    ):
        admin.execute(f"create or replace function rate() returns int immutable {body}")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"rate\(\), which reads public\.rates"):
            ground.follow("select id, rate() as rate from items")
        admin.execute(
            "create or replace function outer_rate() returns int immutable language plpgsql"
            " as 'begin return rate(); end'"
        )
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="which reads"):
            ground.follow("select id, outer_rate() as rate from items")
        admin.execute("drop function rate(), outer_rate()")
    # extract and substring have a FROM too, and words in strings and comments are not names
    admin.execute(
        "create function harmless(t text) returns text immutable language sql as"
        " $$ select substring(t from 1) || ' from rates' /* from rates */ where t is distinct from 'x' $$"
    )
    ground.follow("select id, harmless(note) as note from items")


def test_a_function_that_comes_to_read_a_table_stops_its_readers(items, ground, admin):
    admin.execute("create function one(n int) returns int immutable language sql as 'select 1'")
    ground.follow("select id, one(v) as v from items")
    found = ground.after(
        "create or replace function one(n int) returns int immutable language sql"
        " as 'select max(v) from items'",
        by=admin,
    )
    assert found.startswith("ERROR function public.one(integer) was replaced")
    assert "which reads public.items" in found


def test_types_are_watched_with_all_their_parts(ground, app, source):
    app.execute("create type mood as enum ('sad', 'ok')")
    app.execute("create type pair as (a int, b int)")
    app.execute("create domain positive as int check (value > -100)")
    source("feelings(id int primary key, m mood, p pair, d positive)")
    ground.follow("select id, m::text as m, (p).a as a, d + 0 as d from feelings where m > 'sad'")
    for statement, says in (
        ("alter type mood rename value 'ok' to 'fine'", "type mood was altered (labels)"),
        ("alter type mood add value 'glad' before 'fine'", "type mood was altered (labels)"),
        ("alter type pair add attribute c int", "type pair was altered (attributes)"),
        ("alter type pair drop attribute c", "type pair was altered (attributes)"),
        ("alter domain positive add constraint small check (value < 1000) not valid", "positive was altered"),
        ("alter domain positive drop constraint small", "type positive was altered (constraints)"),
        ("alter domain positive set not null", "type positive was altered"),
        ("alter domain positive drop not null", "type positive was altered"),
    ):
        found = ground.after(statement).replace("public.", "")
        assert says in found or ("ERROR" in found and says.split(" was")[0] in found), (statement, found)
    # values of an attribute that was dropped are gone, even if one of the same name follows
    found = ground.after("alter type pair drop attribute b; alter type pair add attribute b int")
    assert found == "type public.pair was altered (attributes)"
    for statement in (
        "alter domain positive set default 3",
        "alter domain positive validate constraint positive_check",
        "comment on type mood is 'nothing'",
        "grant usage on type mood to public",
    ):
        app.execute(statement)
        assert (statement, ground.poll()) == (statement, {})


def test_names_of_types_and_collations_are_watched(ground, app, admin, source):
    """They are in what was compiled for the query, also where the query itself does not name them."""
    app.execute("create type mood as enum ('sad', 'ok')")
    app.execute("create domain small as int")
    admin.execute("create collation plain (locale = 'C'); create schema aside")
    source("feelings(id int primary key, m mood, d small, w text collate plain)")
    ground.follow("select id, m, d, w from feelings")
    for statement, says in (
        ("alter type mood rename to feeling", "type public.mood was altered (name)"),
        ("alter type feeling set schema aside", "type public.feeling was altered (name)"),
        ("alter domain small rename to smaller", "type public.small was altered (name)"),
        ("alter collation plain rename to plainer", "collation public.plain has another version or"),
    ):
        assert says in ground.after(statement, by=admin)


def test_casts_operators_and_operator_classes_are_watched(ground, app, admin, source):
    app.execute("create type pair as (a int, b int)")
    app.execute("create type colour as enum ('red', 'blue')")
    source("things(id int primary key, p pair, c colour)")
    admin.execute("create function as_text(colour) returns text immutable language sql return 'a colour'")
    admin.execute("create function less(pair, pair) returns boolean immutable language sql return false")
    ground.follow("select id, c, p, id + 1 as next from things")
    ground.follow("select id + 2 as id from things", "t")
    found = "cast of a type that the query uses was created or dropped"
    assert found in ground.after(
        "create cast (colour as text) with function as_text(colour) as implicit", by=admin
    )
    assert found in ground.after("drop cast (colour as text)", by=admin)
    assert ground.state("t") == (False, None, None)
    admin.execute("create operator <<<< (leftarg = int, rightarg = int, function = int4pl)")
    assert ground.poll() == {}
    # one of a name that both queries use
    admin.execute("create function plus(text, int) returns int immutable language sql return 0")
    admin.execute("create operator + (leftarg = text, rightarg = int, function = plus)")
    assert set(ground.poll()) == {"s", "t"}
    admin.execute(
        "create operator class pairs for type pair using hash as operator 1 = (record, record),"
        " function 1 (pair, pair) hash_record(record)"
    )
    assert "operator class" in ground.poll()["s"]


def test_a_collation_of_another_version_loads_anew(ground, admin, source):
    admin.execute("create collation german (locale = 'C')")
    source("words(id int primary key, w text collate german)")
    ground.follow("select max(w) as w from words")
    admin.execute("comment on collation german is 'nothing'")
    assert ground.poll() == {}
    # what ALTER COLLATION REFRESH VERSION writes after the library has another version
    admin.execute("set allow_system_table_mods = on")
    found = ground.after("update pg_collation set collversion = '2' where collname = 'german'", by=admin)
    assert found == "collation public.german has another version or definition"


def test_a_renamed_schema_is_told(ground, app, admin):
    admin.execute("create schema shop authorization app; grant usage on schema shop to trickle")
    app.execute(
        "create table shop.orders(id int primary key); grant select, trigger on shop.orders to trickle"
    )
    ground.follow("select id from shop.orders")
    found = ground.after("alter schema shop rename to store", by=admin)
    assert found.startswith("ERROR ")
    assert "store" in found
    assert "ERROR" not in ground.after("alter schema store rename to shop", by=admin)
