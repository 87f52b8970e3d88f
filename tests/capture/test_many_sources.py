"""Gaps in capture are looked for all the time, also where there are a thousand sources."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.capture.repair import capture_gaps
from pgtrickle.embedded import SUPERUSER
from tests.fixtures.databases import Database
from tests.fixtures.waiting import quickest

SOURCES = 1000
SECONDS = 3.0
"""Several times what it takes on a busy machine."""


@pytest.fixture
def many(database: Database, admin: psycopg.Connection, connection: psycopg.Connection) -> None:
    admin.execute(
        f"do $$ begin for n in 1..{SOURCES} loop"
        " execute format('create table many_%s (id int primary key, v text)', n);"
        " execute format('grant select, trigger on many_%s to trickle', n); end loop; end $$"
    )
    # not in one transaction: PostgreSQL has only so many locks
    for first in range(1, SOURCES + 1, 100):
        connection.execute(
            "select pgtrickle_internal.capture_source(format('many_%%s', n)::regclass, '{1,2}')"
            " from generate_series(%s::int, %s::int) n",
            (first, first + 99),
        )
        connection.commit()
    with database.connect(SUPERUSER, autocommit=True) as tidying:
        tidying.execute("vacuum analyze")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_sources_are_looked_through_in_a_moment(many, admin, connection):
    assert capture_gaps(connection) == {}
    assert quickest(lambda: capture_gaps(connection)) < SECONDS
    admin.execute("alter table many_500 disable trigger all")
    admin.execute("drop table many_700 cascade")
    (gap,) = capture_gaps(connection).values()
    assert quickest(lambda: capture_gaps(connection)) < SECONDS
    assert "public.many_500 was off" in gap
