"""Values that print as names of objects may be stored and compared, but not printed or parsed by a query."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.every_postgres


@pytest.fixture
def log(app, source):
    app.execute("create type place as (relation regclass, note text)")
    app.execute("create domain known_table as regclass")
    app.execute("create type mood as enum ('good', 'bad')")
    return source(
        "log(id int, relation regclass, grantee regrole, word text, relations regclass[], at place,"
        " known known_table, mood mood, acl aclitem, acls aclitem[])"
    )


def create(app, query: str) -> None:
    app.execute("select pgtrickle.create_stream_table('seen', %s)", (query,))


@pytest.mark.parametrize(
    "expression",
    [
        "relation::text",
        "grantee::text",
        "word::regclass",
        "relation || '!'",
        "concat(relation, word)",
        "format('%s', relation)",
        "to_json(relation)",
        "to_jsonb(l)",
        "row_to_json(l)",
        "jsonb_build_object('t', relation)",
        "quote_literal(relation)",
        "relations::text",
        "relations::text[]",
        "array_to_string(relations, ',')",
        "at::text",
        "known::text",
        "row(relation)::text",
        "upper(relation::varchar)",
        "pg_typeof(mood)::text",
        "'english'::regconfig::text",
        "acl::text",
        "acls::text",
        "format('%s', acl)",
        "word::aclitem",
    ],
)
def test_a_query_that_prints_or_parses_names_is_refused(log, app, expression):
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="names of database objects"):
        create(app, f"select id, {expression} as shown from log l")


def test_a_view_that_prints_names_is_refused_too(log, app):
    app.execute("create view printed as select id, relation::text as relation from log")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="names of database objects"):
        create(app, "select id from printed where relation = 'log'")


@pytest.mark.parametrize(
    "query",
    [
        "select id, relation, relations, at, known from log",
        "select relation, count(*) from log group by relation",
        "select id from log where relation = 'log'::regclass",
        "select a.id from log a join log b on a.relation = b.relation",
        "select relation, array_agg(id order by id) from log group by relation",
        "select id, pg_typeof(word)::text as shown from log",
        "select id, pg_typeof(word) as shown from log",
        "select id, id::text || word as shown from log",
        "select id, to_tsvector('english', word)::text as shown from log",
        "select id::text as shown from log where to_tsvector('simple', word) @@ to_tsquery('simple', 'a')",
    ],
)
def test_a_query_that_only_carries_them_is_taken(log, app, query):
    create(app, query)
