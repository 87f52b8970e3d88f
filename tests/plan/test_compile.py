"""What compiling makes of queries on which it is easy to be wrong in silence."""

from __future__ import annotations

import pytest

from pgtrickle.plan.explain import missing_indexes
from pgtrickle.plan.operators import Join
from pgtrickle.plan.program import RowsTarget
from pgtrickle.plan.reads import ReadKind, Version
from tests.plan.queries import compile_query

TABLES = (
    "t(k int, x numeric(20,8), big numeric(50,2), n2 numeric(10,2), v5 varchar(5), ts3 timestamp(3))",
    "u(k int, x int, n4 numeric(10,4), v10 varchar(10), ts timestamp)",
)


@pytest.fixture
def compile_(connection, source):
    for table in TABLES:
        source(table)

    def compile_one(query: str):
        return compile_query(connection, query)

    return compile_one


def test_a_sum_of_many_decimals_is_left_to_postgresql(compile_):
    compiled = compile_("select k, sum(x) from t group by k")
    assert compiled.shape.description == "affected groups evaluated again by PostgreSQL"


def test_the_least_of_many_decimals_is_never_compared_as_text(compile_):
    compiled = compile_("select k, min(x) as low from t group by k")
    assert compiled.shape.description == "affected groups evaluated again by PostgreSQL"


def test_a_sum_of_wide_numbers_is_left_to_postgresql(compile_):
    compiled = compile_("select k, sum(big) from t group by k")
    assert compiled.shape.description == "affected groups evaluated again by PostgreSQL"


@pytest.mark.parametrize(("first", "second"), [("n2", "n4"), ("v5", "v10"), ("ts3", "ts")])
def test_a_union_keeps_what_its_second_arm_has(compile_, first, second):
    compiled = compile_(f"select {first} as v from t union all select {second} from u")
    target = compiled.program(compiled.sources).target
    assert isinstance(target, RowsTarget)
    assert "(5)" not in target.fields[0].carrier.restore
    assert "(10,2)" not in target.fields[0].carrier.restore
    assert "(3)" not in target.fields[0].carrier.restore


def test_a_subquery_may_give_a_name_twice(compile_):
    compiled = compile_("select s.a, s.b from (select k, k from t) as s(a, b)")
    target = compiled.program(compiled.sources).target
    assert [(output.name, output.sql) for output in target.outputs] == [("a", '"f0"'), ("b", '"f0"')]


def test_a_list_of_constants_stays_in_postgresql(compile_):
    compiled = compile_("select k from t where k in (1, 2, 3)")
    (read,) = compiled.program(compiled.sources).reads
    assert read.condition is not None


def test_a_sum_over_a_case_of_two_tables_is_merged(compile_):
    compiled = compile_(
        "select t.k, sum(case when u.x > 0 then t.n2 end) as s from t join u on u.k = t.k group by t.k"
    )
    assert compiled.shape.description == "groups merged with their stored state"


def test_three_tables_may_be_joined_by_one_name(compile_):
    compiled = compile_("select k from t join u using (k) join (select k from u) w using (k)")
    joins = [op.on for op in compiled.root.walk() if isinstance(op, Join)]
    assert joins == [(("t.k", "u_1.k"),), (("t.k", "u.k"),)]


def test_an_index_on_an_expression_serves_a_lookup(compile_, app):
    app.execute("create index on t (lower(v5))")
    app.execute("create index on u (lower(v10))")
    compiled = compile_("select t.k from t join u on lower(t.v5) = lower(u.v10)")
    assert missing_indexes(compiled.program(compiled.sources)) == []


RECURSION = (
    "with recursive r(a, b) as (select k, x from u union select r.a, u.x from r join u on u.k = r.b)"
    " select t.v5, r.b from t join r on r.a = t.k"
)


def _versions(compiled, *changed):
    """The versions of all that PostgreSQL evaluates when these tables have changed."""
    relations = {
        op.source.relation
        for op in compiled.root.walk()
        if getattr(op, "source", None) and op.source.name.name in changed
    }
    reads = compiled.program(frozenset(relations)).reads
    return [read.version for read in reads if read.kind is ReadKind.ANSWER]


def test_a_recursion_is_evaluated_at_the_ends_at_which_it_is_needed(compile_):
    compiled = compile_(RECURSION)
    assert _versions(compiled, "t") == [Version.NOW]
    assert _versions(compiled, "u") == [Version.CHANGED]
    assert _versions(compiled, "t", "u") == [Version.CHANGED, Version.STAYED]


def test_a_recursion_is_asked_only_by_keys_that_there_are(compile_):
    compiled = compile_(RECURSION)
    reads = compiled.program(compiled.sources).reads
    changed, stayed = (read for read in reads if read.kind is ReadKind.ANSWER)
    assert [[p.read for p in one.providers] for one in changed.lookups] == [["change_of_u", "change_of_u_2"]]
    assert [one.columns for one in stayed.lookups] == [('t."a_4"',)]


def test_a_change_of_values_with_several_forms_does_not_tell_whether_a_recursion_differs(compile_):
    query = (
        "with recursive r(a, x) as (select k, {0} from t union select r.a, {0} from r join t on t.k = r.a)"
    )
    for value, is_told in (("t.x", False), ("t.x::text", True)):
        compiled = compile_(f"{query.format(value)} select a, x from r")
        (read,) = (r for r in compiled.program(compiled.sources).reads if r.kind is ReadKind.ANSWER)
        assert bool(read.lookups) is is_told
