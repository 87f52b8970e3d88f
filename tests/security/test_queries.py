"""No query makes the sidecar run code of somebody it does not trust, whatever kind of expression holds it."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import TRICKLE
from tests.security.conftest import SECRET

pytestmark = pytest.mark.every_postgres

T = "mallory.t"

QUERIES = {
    "a function": f"select mallory.evil(id, 'function') from {T}",
    "an operator": f"select id operator(mallory.===) 1 as a from {T}",
    "an operator in a subquery": f"select 1 as a where 1 operator(mallory.===) any (select id from {T})",
    "a cast to a domain": f"select id::mallory.trap from {T}",
    "a domain over a domain": f"select id::mallory.trap2 from {T}",
    "an array of a domain": f"select array[id]::mallory.trap[] from {T}",
    "a composite with a domain": f"select row(id, 'x')::mallory.pair from {T}",
    "an unread column of a record": (
        f"select r.a from {T}, jsonb_to_record(doc) as r(a int, b mallory.trap)"
    ),
    "a populated record": f"select (jsonb_populate_record(null::mallory.pair, doc)).b from {T}",
    "an unread column of XMLTABLE": (
        f"select r.a from {T}, xmltable('/r' passing xmlelement(name r, xmlelement(name a, id))"
        " columns a int path 'a', b mallory.trap path 'a') r"
    ),
    "an aggregate": f"select mallory.evil_sum(id) as s from {T}",
    "an aggregate as a window": f"select mallory.evil_sum(id) over () as s from {T}",
    "an order": f"select id from {T} order by mallory.evil(id, 'order') limit 1",
    "a condition": f"select id from {T} where mallory.evil_check(id, 'where')",
    "a join condition": f"select a.id from {T} a join {T} b on mallory.evil_check(a.id, 'join')",
    "a grouping": f"select mallory.evil(id, 'group') as g, count(*) from {T} group by 1",
    "HAVING": f"select word from {T} group by word having mallory.evil_check(min(id), 'having')",
    "a function in FROM": f"select f from {T}, mallory.evil(id, 'from') f",
    "GREATEST of a domain": f"select greatest(id::mallory.trap, 1) as g from {T}",
    "a default argument": f"select mallory.with_default(id) as a from {T}",
    "a cast that to_jsonb finds": f"select to_jsonb(row(id, 1)::mallory.shown) as j from {T}",
    "a cast to text": f"select (row(id, 1)::mallory.shown)::text as j from {T}",
    "a view of the attacker's": "select * from mallory.below",
    "a range over an evil difference": f"select mallory.span(id, id + 1) as s from {T}",
    "a SQL body": f"select mallory.sql_body(id) as a from {T}",
    "a security definer": f"select mallory.as_its_owner(id) as a from {T}",
    "a negator of a trusted operator": f"select not (id operator(mallory.====) 1) as a from {T}",
    "a CASE that never happens": f"select case when id < 0 then mallory.evil(id, 'never') end as a from {T}",
    "a constant": f"select mallory.evil('constant') as a, id from {T}",
    "LIMIT": f"select id from {T} order by id limit mallory.evil('limit')",
    "a set operation over a domain": f"select id::mallory.trap from {T} union select 2",
    "VALUES": f"select v.a from {T}, (values (1::mallory.trap)) v(a)",
    "a recursion": (
        "with recursive r(n) as ("
        "select 1 union all select mallory.evil(n, 'recursion') + 1 from r where n < 3)"
        f" select n from r, {T}"
    ),
}

JSON_QUERIES = {
    "JSON_VALUE": f"select json_value(doc, '$.a' returning mallory.trap) as a from {T}",
    "JSON_QUERY": f"select json_query(doc, '$' returning mallory.pair) as a from {T}",
    "an unread column of JSON_TABLE": (
        f"select r.a from {T}, json_table(doc, '$' columns (a int path '$.a', b mallory.trap path '$.b')) r"
    ),
    "a default of JSON_VALUE": (
        f"select json_value(doc, '$.z' returning int default mallory.evil('default') on empty) as a from {T}"
    ),
}

MORE_TRAPS = (
    "create domain mallory.trap2 as mallory.trap",
    "create type mallory.pair as (a mallory.trap, b text)",
    "create type mallory.shown as (a int, b int)",
    "create function mallory.show(mallory.shown) returns json immutable language plpgsql"
    " as $$ begin perform mallory.note('json'); return '1'; end $$",
    "create function mallory.show_text(mallory.shown) returns text immutable language plpgsql"
    " as $$ begin perform mallory.note('text'); return '1'; end $$",
    "create cast (mallory.shown as json) with function mallory.show(mallory.shown)",
    "create cast (mallory.shown as text) with function mallory.show_text(mallory.shown) as assignment",
    "create aggregate mallory.evil_sum(int) (sfunc = mallory.evil_step, stype = int)",
    "create function mallory.evil_step(int, int) returns int immutable language plpgsql"
    " as $$ begin return mallory.note('step'); end $$",
    "create aggregate mallory.evil_sum(int) (sfunc = mallory.evil_step, stype = int)",
    "create function mallory.with_default(x int, y int default mallory.evil('default')) returns int immutable"
    " language plpgsql as 'begin return 1; end'",
    f"create view mallory.below as select mallory.evil(id, 'view') as a from {T}",
    "create function mallory.distance(int, int) returns float8 immutable language plpgsql"
    " as $$ begin return mallory.note('distance'); end $$",
    "create type mallory.span as range (subtype = int4, subtype_diff = mallory.distance)",
    "create function mallory.sql_body(x int) returns int immutable language sql"
    " return mallory.evil(x, 'body')",
    "create function mallory.as_its_owner(x int) returns int immutable security definer language plpgsql"
    " as $$ begin perform set_config('search_path', 'mallory', false);"
    " return mallory.note('definer'); end $$",
    "create operator mallory.==== (function = int4eq, leftarg = int, rightarg = int,"
    " negator = operator(mallory.!====))",
    "create operator mallory.!==== (function = mallory.evil_pair, leftarg = int, rightarg = int,"
    " negator = operator(mallory.====))",
)


def test_the_traps_work(attack, database):
    """Otherwise all that follows would prove nothing."""
    with database.connect(TRICKLE, autocommit=True) as sidecar:
        sidecar.execute("select mallory.evil('trap')")
        sidecar.execute("select 1::mallory.trap")
        sidecar.execute("select 1 operator(mallory.===) 2")
    ran = [(TRICKLE, how, SECRET) for how in ("trap", "domain", "operator")]
    assert attack.succeeded() == [*ran, ("mallory.log",)]


def test_no_kind_of_expression_runs_code_of_the_attacker(attack, pg_version):
    attack.run(*MORE_TRAPS)
    queries = QUERIES | (JSON_QUERIES if pg_version >= 17 else {})
    accepted = []
    for number, (name, query) in enumerate(queries.items()):
        if attack.create(query, f"mallory.st{number}") is None:
            accepted.append(name)
            attack.refresh(f"mallory.st{number}")
    assert attack.succeeded() == []
    assert accepted == []


def test_settings_of_the_session_do_not_blind_the_check(attack):
    """Under these, our own SQL would read its patterns differently."""
    for setting in ("standard_conforming_strings = off", "transform_null_equals = on", "array_nulls = off"):
        attack.run(f"set {setting}", "select pgtrickle_internal.schedule_seconds('1s')")
    assert "evil" in str(attack.create(QUERIES["a function"]))
    assert "evil" in str(attack.create(QUERIES["an unread column of a record"]))
    assert attack.succeeded() == []


def test_temporary_objects_are_no_ground_for_a_stream_table(attack):
    attack.run("create domain pg_temp.brief as int", "create type pg_temp.short as (a int)")
    assert "disappears with its session" in str(attack.create(f"select id::pg_temp.brief from {T}"))
    assert "disappears with its session" in str(attack.create(f"select (row(id)::pg_temp.short).a from {T}"))


def test_names_cannot_smuggle_sql_or_hide_objects(attack):
    attack.run(
        'create schema "mallory.x"',
        """create table mallory."t'; select mallory.evil('name'); --"("a) :location 99999 (" int, """
        """"b"", mallory.evil('name')) as ""x" text)""",
        f"""grant select, trigger on mallory."t'; select mallory.evil('name'); --" to {TRICKLE}""",
        """insert into mallory."t'; select mallory.evil('name'); --" values (1, 'x')""",
        'create function mallory."f :location 1"(int) returns int immutable language plpgsql'
        " as $$ begin return mallory.note('name'); end $$",
    )
    name = """mallory."t'; select mallory.evil('name'); --\""""
    assert attack.create(f"select * from {name}", """mallory."s"";select mallory.evil('x')--\"""") is None
    assert attack.refresh("""mallory."s"";select mallory.evil('x')--\"""") is None
    query = f"""select mallory."f :location 1"("a) :location 99999 (") as ":location 5" from {name}"""
    assert "f :location 1" in str(attack.create(query))
    assert attack.succeeded() == []


def test_a_better_fitting_function_elsewhere_is_not_found(attack):
    """What the sidecar generates names functions and operators that the attacker can overload."""
    attack.run(
        "create function public.hash_record_extended(record, int) returns bigint immutable language plpgsql"
        " as $$ begin return mallory.note('hash'); end $$",
        "create function public.count(text) returns bigint immutable language plpgsql"
        " as $$ begin return mallory.note('count'); end $$",
        "create type mallory.mood as enum ('sad')",
        "create function public.same(mallory.mood, mallory.mood) returns boolean immutable language plpgsql"
        " as $$ begin return mallory.note('mood') = 1; end $$",
        "create operator public.= (function = public.same, leftarg = mallory.mood, rightarg = mallory.mood)",
        "create operator public.<> (function = public.same, leftarg = mallory.mood, rightarg = mallory.mood)",
    )
    assert attack.create(f"select id, word, 'sad'::mallory.mood as m from {T}") is None
    assert attack.refresh() is None
    attack.change()
    assert attack.refresh() is None
    attack.run(f"update {T} set word = 'x' || word")
    assert attack.refresh() is None
    assert attack.succeeded() == []


@pytest.mark.parametrize(("last", "follows_clock"), [("id", False), ("extract(year from now())::int", True)])
def test_a_query_too_deep_for_our_parser_is_recomputed_with_the_reason(attack, last, follows_clock):
    """PostgreSQL nests deeper than Python does; no worker breaks for it."""
    deep = "(" * 400 + last + " + 1)" * 400
    attack.mallory.execute(
        "select pgtrickle.create_stream_table('mallory.st', %s, schedule => null)",
        (f"select {deep} as x from {T}",),
    )
    assert attack.refresh() is None
    assert attack.admin.execute(
        "select effective_refresh_mode, downgrade_reason ~ 'MAX_DEPTH', follows_clock"
        " from pgtrickle.pgt_stream_tables"
    ).fetchone() == ("FULL", True, follows_clock)
