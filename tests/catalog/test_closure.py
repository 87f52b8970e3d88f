"""Whatever kind of expression holds an object, the closure of a query has it."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.every_postgres

GROUND = """
create schema deep;
set search_path = deep, public;
create function deep.judge(int) returns boolean immutable language sql as 'select true';
create function deep.inner_one(int) returns int immutable language sql as 'select $1';
create function deep.outer_one(a int, b int default deep.inner_one(1)) returns int immutable
    language sql return deep.inner_one(a) + b;
create domain deep.judged as int check (deep.judge(value));
create domain deep.twice as deep.judged;
create type deep.pair as (one deep.twice, two text);
create type deep.mood as enum ('sad', 'happy');
create function deep.mood_text(deep.mood) returns text immutable language plpgsql as 'begin return 1; end';
create cast (deep.mood as text) with function deep.mood_text(deep.mood);
create function deep.same(int, int) returns boolean immutable language sql as 'select $1 = $2';
create function deep.differs(int, int) returns boolean immutable language sql as 'select $1 <> $2';
create operator deep.=== (function = deep.same, leftarg = int, rightarg = int, negator = operator(deep.!==));
create operator deep.!== (
    function = deep.differs, leftarg = int, rightarg = int, negator = operator(deep.===));
create function deep.step(int, int) returns int immutable language sql as 'select $1 + $2';
create function deep.last_step(int) returns int immutable language sql as 'select $1';
create aggregate deep.total(int) (sfunc = deep.step, stype = int, finalfunc = deep.last_step);
create function deep.distance_of(int, int) returns float8 immutable language sql as 'select 1.0::float8';
create type deep.span as range (subtype = int4, subtype_diff = deep.distance_of);
create table deep.t(id int, j jsonb, x xml, m deep.mood, p deep.pair, a int[]);
create view deep.below as select id, deep.outer_one(id) as o, j, x from deep.t;
"""

CASES = {
    "a function": ("select deep.inner_one(id) from t", {"inner_one"}),
    "the default of an argument": ("select deep.outer_one(id, 2) from t", {"inner_one", "outer_one"}),
    "the function of a view below": ("select o from below", {"inner_one", "outer_one"}),
    "an operator and its negator": ("select id === 1 from t", {"same", "differs"}),
    "ANY with an operator": ("select id operator(deep.===) any (a) from t", {"same", "differs"}),
    "an aggregate": ("select deep.total(id) from t", {"total", "step", "last_step"}),
    "a window": ("select deep.total(id) over () from t", {"total", "step", "last_step"}),
    "a cast to a domain over a domain": ("select id::deep.twice from t", {"judge"}),
    "a cast of an array": ("select a::deep.twice[] from t", {"judge"}),
    "a composite of domains": ("select p from t", {"judge"}),
    "a row made of another": ("select row(id, 'x')::deep.pair from t", {"judge"}),
    "a column of a record that nobody reads": (
        "select r.a from t, jsonb_to_record(j) as r(a int, b deep.judged)",
        {"judge"},
    ),
    "a column of ROWS FROM": (
        "select r.a from t, rows from (jsonb_to_recordset(j) as (a int, b deep.judged),"
        " generate_series(1, 2)) r",
        {"judge"},
    ),
    "a column of XMLTABLE": (
        "select r.a from t, xmltable('/a' passing x columns a int path 'b', c deep.judged path 'd') r",
        {"judge"},
    ),
    "a populated record": ("select (jsonb_populate_record(null::deep.pair, j)).two from t", {"judge"}),
    "a user-defined cast that JSON functions would find": ("select to_jsonb(m) from t", {"mood_text"}),
    "a subquery": ("select (select max(deep.inner_one(id)) from t)", {"inner_one"}),
    "a WITH query": (
        "with w as (select deep.inner_one(id) as i from t) select 1 as one from w",
        {"inner_one"},
    ),
    "GREATEST of a domain": ("select greatest(id::deep.judged, 1) from t", {"judge"}),
    "VALUES": ("select v.a from t, (values (1::deep.judged)) v(a)", {"judge"}),
    "a constant of a domain": ("select 1::deep.judged as one from t", {"judge"}),
    "an order": (
        "select id from t order by id using operator(pg_catalog.<), deep.inner_one(id)",
        {"inner_one"},
    ),
    "a range": ("select deep.span(id, id + 1) from t", {"distance_of"}),
    "a condition": ("select id from t where not deep.judge(id)", {"judge"}),
}

JSON_CASES = {
    "JSON_VALUE": ("select json_value(j, '$.a' returning deep.judged) from t", {"judge"}),
    "a column of JSON_TABLE": (
        "select r.a from t, json_table(j, '$' columns (a int path '$.a', b deep.judged path '$.b')) r",
        {"judge"},
    ),
    "JSON_QUERY": ("select json_query(j, '$.a' returning deep.pair) from t", {"judge"}),
}


def called(connection: psycopg.Connection, query: str) -> set[str]:
    """The functions of the schema that are in the closure of a query."""
    connection.execute(f"create temporary view asked as {query}")
    rows = connection.execute(
        "select p.proname from pgtrickle_internal.reached_objects('pg_temp.asked'::regclass, 0) o"
        " join pg_proc p on p.oid = o.objid where o.classid = 'pg_proc'::regclass"
        " and p.pronamespace = 'deep'::regnamespace"
    ).fetchall()
    connection.execute("drop view asked")
    return {name for (name,) in rows}


@pytest.fixture
def ground(admin: psycopg.Connection) -> psycopg.Connection:
    admin.execute(GROUND)
    return admin


def test_every_kind_of_expression_gives_up_what_it_calls(ground, pg_version):
    cases = CASES | (JSON_CASES if pg_version >= 17 else {})
    missing = {
        name: wanted - found
        for name, (query, wanted) in cases.items()
        if not wanted <= (found := called(ground, query))
    }
    assert missing == {}


def test_what_a_query_does_not_reach_is_not_in_its_closure(ground):
    assert called(ground, "select id from t where id > 70000") == set()


def test_relations_and_types_are_in_the_closure(ground):
    ground.execute(
        "create temporary view asked as select o, 'deep.t'::regclass as r, null::deep.mood from below"
    )
    rows = ground.execute(
        "select pg_describe_object(classid, objid, 0)"
        " from pgtrickle_internal.reached_objects('pg_temp.asked'::regclass, 0)"
    ).fetchall()
    assert {"view below", "table t", "type mood", "function outer_one(integer,integer)"} <= {
        r for (r,) in rows
    }


def test_a_position_or_a_modifier_is_no_object(ground):
    """Numbers of other fields may happen to be the OID of something."""
    (some_oid,) = ground.execute("select 'deep.inner_one'::regproc::oid::bigint").fetchone() or (0,)
    tree = (
        f"{{FUNCEXPR :funcid 10 :location {some_oid}}} {{VAR :vartypmod {some_oid}}}"
        f" :coltypmods (i -1 {some_oid}) {{CONST :consttype 23 :constvalue {some_oid} [ 1 ]}}"
    )
    look = "select objid::bigint from pgtrickle_internal.tree_objects(%s)"
    assert ground.execute(look, (tree,)).fetchall() == []
    for tree in (
        f"{{X :anything {some_oid}}}",
        f"(o 1 {some_oid} 2)",
        f"(o {some_oid})",
        f":new_list ({some_oid} ",
    ):
        assert ground.execute(look, (tree,)).fetchall() == [(some_oid,)]
