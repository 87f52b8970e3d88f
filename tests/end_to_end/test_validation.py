"""With a running sidecar, SQL refuses at creation what DIFFERENTIAL cannot follow."""

from __future__ import annotations

import psycopg
import pytest

from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, at timestamptz)", rows=[(1, "2025-01-01")])


def test_a_query_that_cannot_be_followed_is_not_created(orders, app, engine):
    with running(engine):
        eventually(lambda: app.execute("select pgtrickle_internal.is_served()").fetchone() == (True,))
        with pytest.raises(psycopg.Error, match=r"was not created: .*now\(\)"):
            app.execute(
                "call pgtrickle.create_stream_table_and_wait('ages', 'select now() - at as age from orders',"
                " schedule => null, refresh_mode => 'DIFFERENTIAL')"
            )
        assert app.execute("select to_regclass('ages')").fetchone() == (None,)
        assert app.execute("select count(*) from pgtrickle.stream_tables_info").fetchone() == (0,)
        app.execute(
            "call pgtrickle.create_stream_table_and_wait('ids', 'select id from orders',"
            " refresh_mode => 'DIFFERENTIAL')"
        )
        assert app.execute("select id from ids").fetchall() == [(1,)]
