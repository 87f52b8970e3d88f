"""What PostgreSQL answers without reading all of it is never read to its end: such a query is kept whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.operators import Recursive
from tests.fixtures.databases import TEMPLATE, create_database, drop_database
from tests.plan.queries import compile_query

ENDLESS = "with recursive r as (select * from t union all (with x as (select * from r) select * from x))"
AROUND = "with recursive r(a, b) as (select a, b from t union all select r.a, t.b from r join t on t.a = r.b)"
COUNTED = "with recursive r(n) as (select a from t union select r.n + 1 from r join u on u.a > 0)"
REACHED = "with recursive r(a, b) as (select a, b from t union select r.a, t.b from r join t on t.a = r.b)"
LIMITED = (
    "with recursive r(a, n) as (select a, 1 from t"
    " union all select t.b, r.n + 1 from r join t on t.a = r.a where r.n < 5)"
)
UNITED = (
    "with recursive r(n) as (select a from t"
    " union select s.n from (select b as n from t union all select {arm} from r) s)"
)
CYCLE = f"{AROUND} cycle a set is_met using way"

KEPT_WHOLE = (
    f"{ENDLESS} select * from r limit 24",
    f"{AROUND} select a, b from r limit 24",
    f"{AROUND} select a, b from r limit 0",
    f"{AROUND} select a, b from r fetch first 3 rows only",
    f"{AROUND} select u.a, r.b from u join r on r.a = u.a limit 5",
    f"{AROUND} select s.b from (select b from r where a > 1 limit 3) s join u on u.a = s.b",
    f"{AROUND} select u.a, s.b from u left join lateral (select b from r where r.a = u.a limit 1) s on true",
    f"{AROUND} select u.a, (select b from r where r.a = u.a limit 1) as b from u",
    f"{AROUND} select a from u where exists (select from r where r.a = u.a)",
    f"{AROUND} select a from u where not exists (select from r where r.a = u.a)",
    f"{AROUND} select a from u where exists (select from r where r.a = u.a group by r.b)",
    f"{AROUND} select a from u where exists (select distinct r.b from r where r.a = u.a order by 1 limit 2)",
    f"{AROUND} select a from u where a in (select b from r)",
    f"{AROUND} select a from u where a > any (select b from r)",
    f"{AROUND} select a from u where a not in (select b from r)",
    f"{AROUND}, s as (select b from r) select * from s union all (select a from u) limit 7",
    f"{COUNTED} select n from r limit 5",
    f"{COUNTED} select a from u where exists (select from r where r.n = u.a)",
    "with recursive r(n) as (select 1 union select n + 1 from r) select n from r limit 3",
    f"{UNITED.format(arm='r.n + 1')} select n from r limit 3",
    "select generate_series(1, 1000000000000) as n from t limit 5",
    "select generate_series(1, t.b) as n from t limit 5",
    "select a from u where exists (select generate_series(1, 1000000000000))",
    "select u.a, s.n from u, lateral (select generate_series(1, u.a) as n limit 2) s",
    "select numbers_from(t.a) as n from t limit 5",
)
FOLLOWED = (
    f"{UNITED.format(arm='r.n')} select n from r limit 3",
    f"{REACHED} select a, b from r limit 3",
    f"{REACHED} select a from u where exists (select from r where r.a = u.a)",
    f"{CYCLE} select a, b from r limit 3",
    f"{LIMITED} select a, n from r limit 3",
    f"{LIMITED} select a from u where a in (select a from r)",
    f"{AROUND} select a, b from r",
    f"{AROUND} select a, b from r order by a, b limit 3",
    f"{AROUND} select a, count(*) as n from r group by a",
    f"{AROUND} select u.a, (select count(*) from r where r.a = u.a) as n from u",
    "select unnest(arr) as n from t limit 5",
    "select generate_series(1, 10) as n from t limit 5",
    "select n from t, generate_series(1, t.b) n order by n limit 5",
)


TABLES = """
create table t(a int, b int, arr int[], id int primary key);
create table u(a int);
create function numbers_from(int) returns setof int language sql immutable
    as 'select generate_series($1, 1000000000)';
"""


@pytest.fixture(scope="module")
def tables(servers, templates, database_names, request) -> Iterator[psycopg.Connection]:
    server = servers[request.config.getoption("--pg")]
    templates.ensure(server)
    database = create_database(server, next(database_names), TEMPLATE)
    with closing(database.connect(SUPERUSER)) as connection:
        connection.execute(TABLES)
        connection.commit()
        yield connection
    drop_database(database)


@pytest.mark.parametrize("query", KEPT_WHOLE)
def test_a_query_that_may_stop_early_over_something_endless_is_kept_whole(tables, query):
    with pytest.raises(UnsupportedQuery, match=r"without an end|may never end"):
        compile_query(tables, query)
    tables.rollback()


@pytest.mark.parametrize("query", FOLLOWED)
def test_what_surely_ends_or_is_read_whole_by_postgresql_too_is_followed(tables, query):
    compiled = compile_query(tables, query)
    assert "with recursive" not in query or any(isinstance(op, Recursive) for op in compiled.root.walk())
