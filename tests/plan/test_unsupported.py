"""The documented list of what is not followed is true: each of its queries is refused with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.limits import USUAL_LIMITS
from tests.fixtures.databases import TEMPLATE, create_database, drop_database
from tests.plan.analyst import SETUP
from tests.plan.queries import compile_query

PAGE = (Path(__file__).parents[2] / "docs" / "operators" / "unsupported.md").read_text()
REFUSED = dict(re.findall(r"^\| `(select .*?|with .*?)` \| (.*) \|$", PAGE, re.MULTILINE))
LIMITS = dict(re.findall(r"^\| `(MAX_\w+)` \| ([\d ]+) \|", PAGE, re.MULTILINE))

MORE_TABLES = """
create table d(id int primary key, doc json, r double precision);
create table e(id int primary key, at timestamptz);
"""


@pytest.fixture(scope="module")
def tables(servers, templates, database_names, request) -> Iterator[psycopg.Connection]:
    server = servers[request.config.getoption("--pg")]
    templates.ensure(server)
    database = create_database(server, next(database_names), TEMPLATE)
    with closing(database.connect(SUPERUSER)) as connection:
        connection.execute(SETUP + MORE_TABLES)
        connection.commit()
        yield connection
    drop_database(database)


def test_the_list_is_read_from_the_page():
    assert len(REFUSED) > 20


@pytest.mark.parametrize("query", REFUSED)
def test_each_query_of_the_list_is_refused_with_its_reason(tables, query):
    with pytest.raises(UnsupportedQuery, match=re.escape(REFUSED[query])):
        compile_query(tables, query)
    tables.rollback()
    tables.execute(f"create temporary view asked as {query}")
    found = tables.execute("select mode from pgtrickle_internal.mode_of('asked'::regclass)").fetchone()
    assert found != ("DIFFERENTIAL",)
    tables.rollback()


def test_the_limits_of_the_page_are_those_of_the_code():
    documented = {name: int(most.replace(" ", "")) for name, most in LIMITS.items()}
    assert documented == {name.upper(): value for name, value in asdict(USUAL_LIMITS).items()}
