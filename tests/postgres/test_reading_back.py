"""Whether the text of a view, as PostgreSQL prints it, means what the view does."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.introspect import reads_back

SETUP = """
create table t(k int, s text);
create domain label as text;
create function alike(label, label) returns boolean immutable language sql
    as 'select lower($1) operator(pg_catalog.=) lower($2)';
create operator = (leftarg = label, rightarg = label, function = alike);
"""

VIEWS = {
    "select k as a, k as b, count(*) from t group by grouping sets (a, b)": False,
    "select nullif(s::label, 'A'::label) as n from t": False,
    "select case s::label when 'A'::label then 1 end as n from t": False,
    "select s::label is distinct from 'A'::label as n from t": False,
    "select s::label = 'A'::label as n from t": True,
    "select s::label in ('A'::label, 'B'::label) as n from t": True,
    "select k, s, count(*) from t group by cube (k, s) order by k, count(*)": True,
    "select distinct on (k) k, row_number() over w as n from t window w as (order by k) order by k, s": True,
    "select array[1, 2.5]::float8[] as a, -1.5::numeric as n, coalesce(nullif(k, 1), 2) as k from t": True,
}


@pytest.mark.parametrize("query", VIEWS)
def test_a_view_reads_back_if_its_text_says_all(admin, query):
    admin.execute(SETUP)
    admin.execute(f"create view v as {query}")
    view = admin.execute("select 'v'::regclass::oid").fetchone()[0]
    assert reads_back(admin, RelationId(view)) is VIEWS[query]
