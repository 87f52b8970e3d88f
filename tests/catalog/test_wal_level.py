"""A server whose log cannot be decoded: people learn which setting it is, and `auto` uses triggers."""

from __future__ import annotations

import psycopg
import pytest

CREATE = "select pgtrickle.create_stream_table(%s, 'select id from orders', cdc_mode => %s)"
OBSTACLE = "wal_level is replica"
HINT = "Run alter system set wal_level = logical, and restart the server."


def test_the_log_of_a_server_that_writes_too_little(
    app: psycopg.Connection, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--cdc") == "wal":
        pytest.skip("the servers of this run have logical logs")
    app.execute("create table orders (id int primary key)")
    app.execute("grant select, trigger on orders to trickle")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
        app.execute(CREATE, ("insisting", "wal"))
    assert refused.value.diag.message_primary == (
        f"public.orders cannot be captured from the write-ahead log: {OBSTACLE}"
    )
    assert refused.value.diag.message_hint == HINT
    app.execute(CREATE, ("easy", "auto"))
    row = app.execute("select cdc_mode, reason from pgtrickle.check_cdc_health()").fetchone()
    assert row is not None
    assert row[0].lower() == "trigger"
    assert row[1] == f"{OBSTACLE} ({HINT})"
