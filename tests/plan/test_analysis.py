"""Operators say the same as the query: PostgreSQL evaluates both on random rows full of nulls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.analysis.parsing import parse
from pgtrickle.plan.analysis.query import Block
from pgtrickle.plan.compile import regenerate
from pgtrickle.plan.limits import USUAL_LIMITS
from pgtrickle.plan.operators import Join, Mark, OuterJoin, Single, Top, Window
from tests.fixtures.databases import TEMPLATE, create_database, drop_database
from tests.plan.analyst import SETUP, Analyst, evaluated, named_queries

SEEDS = range(1, 5)
QUERIES = named_queries(Path(__file__).parent / "analysis")


@pytest.fixture(scope="module")
def analyst(servers, templates, database_names, request) -> Iterator[Analyst]:
    server = servers[request.config.getoption("--pg")]
    templates.ensure(server)
    database = create_database(server, next(database_names), TEMPLATE)
    with closing(database.connect(SUPERUSER)) as connection:
        connection.execute(SETUP)
        connection.commit()
        yield Analyst(connection)
    drop_database(database)


@pytest.fixture(autouse=True)
def nothing_stays(analyst: Analyst) -> Iterator[None]:
    yield
    analyst.connection.rollback()


@pytest.fixture(scope="module")
def block(analyst: Analyst) -> Callable[[str], Block]:
    """The operators of a query of the files, by its name, analysed once."""
    return cache(lambda name: analyst.block(QUERIES[name]))


@pytest.mark.parametrize("name", QUERIES)
def test_operators_give_the_rows_of_the_query(analyst, block, name):
    ours = evaluated(block(name))
    for seed in SEEDS:
        analyst.fill(seed)
        assert analyst.rows(ours) == analyst.rows(QUERIES[name]), f"seed {seed}"


@pytest.mark.parametrize("name", QUERIES)
def test_what_our_parser_reads_is_what_postgres_wrote(analyst, name):
    given = analyst.canonical(QUERIES[name])
    assert analyst.canonical(regenerate(given)) == given


@pytest.mark.parametrize("name", QUERIES)
def test_column_names_are_unique_in_the_plan(block, name):
    """Names that pass through keep their meaning; only those made anew count."""
    aliases = [op.alias for op in block(name).operator.walk() if hasattr(op, "alias")]
    assert len(aliases) == len(set(aliases))


SEVERAL = {
    "uncorrelated": "select id, (select y from u) as v from t",
    "correlated": "select id, (select y from u where u.k = t.k) as v from t",
    "in where": "select id from t where x = (select y from u where u.k = t.k)",
    "by inequality": "select id, (select y from u where u.y > t.x) as v from t",
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_scalar_subquery_with_several_rows_is_an_error(analyst, name):
    analyst.put("t", [(1, 1, 0, None, None, None, None, None)])
    analyst.put("u", [(1, 1, None, None, None), (1, 2, None, None, None)])
    ours = evaluated(analyst.block(SEVERAL[name]))
    for query in (SEVERAL[name], ours):
        with pytest.raises(psycopg.DatabaseError), analyst.connection.transaction():
            analyst.rows(query)


@pytest.mark.parametrize("name", ["correlated", "in where", "by inequality"])
def test_several_rows_that_nobody_asks_for_are_no_error(analyst, name):
    analyst.put("t", [(1, 2, 5, None, None, None, None, None)])
    analyst.put("u", [(1, 1, None, None, None), (1, 2, None, None, None)])
    ours = evaluated(analyst.block(SEVERAL[name]))
    assert analyst.rows(ours) == analyst.rows(SEVERAL[name])


REFUSED = {
    "with recursive r as (select 1 as n union all select n + 1 from r) select n from r": "without an end",
    "select k from t tablesample system (10)": "TABLESAMPLE",
    "select ctid from t": "reference",
    "select id from t limit (select 1)": "LIMIT",
    "select generate_series(1, generate_series(1, 2)) from t": "in the arguments of another",
    "select t.id, p from t left join lateral pairs(t.x) p on true": "whole row",
    "select id from t where (k, x) < any (select k, y from u)": "comparison of rows",
    "select t.id from t left join lateral unnest(t.arr) e(a) on e.a in (select y from u)": "with a function",
    "select id, case when x > 0 then (select y from u where u.k = t.k) end as v from t": "several rows",
    "select t.id from t full join u on t.k = u.k and t.x in (select z from w)": "FULL JOIN",
    "select id from t left join u on exists (select from w where w.k = t.x and w.z = u.y)": "both sides",
    "select id, (select total(y) from u where u.k = t.k) as v from t": "correlated subquery",
    "select id from t for update": "FOR UPDATE",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_cannot_be_followed_is_refused_with_its_reason(analyst, query):
    with pytest.raises(UnsupportedQuery, match=REFUSED[query]):
        analyst.block(query)


def test_a_function_of_the_user_that_returns_a_set_is_known_by_its_name(analyst):
    query = "select id, several(x) as v from t"
    ours = evaluated(analyst.block(query))
    analyst.fill(1)
    assert analyst.rows(ours) == analyst.rows(query)


def kinds(block, *wanted):
    return [type(op) for op in block.operator.walk() if isinstance(op, wanted)]


def test_a_condition_on_the_padded_side_makes_the_join_an_inner_one(analyst):
    block = analyst.block("select t.id from t left join u on t.k = u.k where u.y > 1")
    assert kinds(block, Join, OuterJoin) == [Join]


def test_texts_put_together_are_null_with_one_of_them_and_arrays_are_not(analyst):
    texts = analyst.block("select w.k from w left join t on t.k = w.k where t.s || w.v <> 'ab'")
    arrays = analyst.block("select w.k from w left join t on t.k = w.k where t.arr || 1 <> array[2]")
    assert kinds(texts, Join, OuterJoin) == [Join]
    assert kinds(arrays, Join, OuterJoin) == [OuterJoin]


def test_not_in_without_nulls_is_one_mark(analyst):
    block = analyst.block("select id from t where id not in (select z from w)")
    assert kinds(block, Mark) == [Mark]


def test_a_scalar_aggregate_that_null_would_fail_is_an_inner_join(analyst):
    block = analyst.block("select id from t where x < (select max(y) from u where u.k = t.k)")
    assert kinds(block, Join, OuterJoin) == [Join]


def test_a_lookup_by_key_needs_no_check_for_several_rows(analyst):
    block = analyst.block("select y, (select x from t where t.id = u.k) as v from u")
    assert kinds(block, Single) == []


def test_windows_of_one_partition_are_one_operator(analyst):
    block = analyst.block(
        "select sum(x) over (partition by k, s), rank() over (partition by s, k order by x),"
        " max(x) over (partition by k) from t"
    )
    assert kinds(block, Window) == [Window, Window]


def test_the_order_of_a_query_without_limit_is_dropped(analyst):
    assert kinds(analyst.block("select id from t order by x"), Top) == []


def test_what_all_alternatives_demand_joins(analyst):
    block = analyst.block(
        "select t.id from t, u"
        " where (t.k = u.k and t.x = 1 and u.y = 2) or (t.k = u.k and t.x = 2 and u.y = 1)"
    )
    (join,) = [op for op in block.operator.walk() if isinstance(op, Join)]
    assert join.on == (("t.k", "u.k"),)


PATHOLOGICAL = {
    "MAX_TEXT_BYTES": "select " + "1 + " * 400_000 + "1",
    "MAX_DEPTH": "select " + "(" * 2_000 + "1" + ")" * 2_000,
}


@pytest.mark.parametrize("limit", PATHOLOGICAL)
def test_a_text_past_a_limit_is_refused_by_its_name(limit):
    with pytest.raises(UnsupportedQuery, match=limit):
        parse(PATHOLOGICAL[limit])


def test_too_many_tables_are_refused_by_name(analyst):
    tables = ", ".join(f"t as t{number}" for number in range(USUAL_LIMITS.max_relations + 1))
    with pytest.raises(UnsupportedQuery, match="MAX_RELATIONS"):
        analyst.block(f"select t0.id from {tables}")


def test_as_many_tables_as_allowed_are_joined(analyst):
    tables = " join ".join(
        f"w as w{number}" + (f" on w{number}.k = w{number - 1}.k" if number else "")
        for number in range(USUAL_LIMITS.max_relations)
    )
    block = analyst.block(f"select w0.k from {tables}")
    assert len(kinds(block, Join)) == USUAL_LIMITS.max_relations - 1


def test_too_many_subqueries_are_refused_by_name(analyst):
    asked = " or ".join(f"x in (select y + {n} from u)" for n in range(USUAL_LIMITS.max_subqueries + 1))
    with pytest.raises(UnsupportedQuery, match="MAX_"):
        analyst.block(f"select id from t where {asked}")


def test_too_many_grouping_sets_are_refused_by_name(analyst):
    with pytest.raises(UnsupportedQuery, match="MAX_GROUPING_SETS"):
        analyst.block("select count(*) from t group by cube (id, k, x, s, n, d, arr)")
