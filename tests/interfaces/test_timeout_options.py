"""How people say how long a refresh or a comparison may take."""

from __future__ import annotations

import pytest

import pgtrickle
from pgtrickle.commands.status import table_status
from pgtrickle.interfaces.ddl.execute import execute as run_statements
from pgtrickle.interfaces.ddl.parser import parse
from pgtrickle.model.errors import CommandRefused, VerifyTimedOut
from tests.fixtures.databases import APP, TRICKLE


@pytest.fixture
def orders(source):
    return source("orders(id int primary key)", rows=[(1,), (2,)])


@pytest.fixture
def slept(source, app, admin, database, engine):
    """A stream table whose rows took three seconds to load, and take as long to compare."""
    admin.execute(
        "create function slept(int) returns int language plpgsql immutable as"
        " 'begin perform pg_sleep($1); return $1; end'"
    )
    source("naps(id int primary key, seconds int)", rows=[(1, 3)])
    app.execute("select pgtrickle.create_stream_table('naps_taken', 'select slept(seconds) as n from naps')")
    with pgtrickle.connect(database.dsn(TRICKLE), spark=engine.spark.small) as trickle:
        trickle.refresh("naps_taken")
        yield trickle


def test_the_command_line_sets_changes_shows_and_resets_the_limit_of_a_refresh(cli, orders, dsn):
    query = "select id from orders"
    assert cli("create", "s", "--query", query, "--refresh-timeout", "1h30m").exit_code == 0
    assert table_status(dsn, "s").refresh_timeout == 5400
    assert "1 h 30 min" in cli("status", "s").out
    assert cli("alter", "s", "--refresh-timeout", "250ms").exit_code == 0
    assert table_status(dsn, "s").refresh_timeout == 0.25
    assert cli("alter", "s", "--refresh-timeout", "none").exit_code == 0
    assert table_status(dsn, "s").refresh_timeout == 0
    assert cli("alter", "s", "--refresh-timeout", "default").exit_code == 0
    assert table_status(dsn, "s").refresh_timeout is None
    answer = cli("alter", "s", "--refresh-timeout", "soon")
    assert answer.exit_code != 0
    assert "'soon' is not a value of refresh_timeout" in answer.err


def test_statements_set_change_and_reset_the_limit_of_a_refresh(orders, dsn, database):
    def run(statement: str) -> None:
        list(run_statements(database.dsn(APP), parse(statement), lambda name: ""))

    run("create stream table s with (refresh_timeout = '5min') as select id from orders")
    assert table_status(dsn, "s").refresh_timeout == 300
    run("alter stream table s set (refresh_timeout = '90')")
    assert table_status(dsn, "s").refresh_timeout == 90
    run("alter stream table s set (refresh_timeout = 'default')")
    assert table_status(dsn, "s").refresh_timeout is None
    with pytest.raises(CommandRefused, match="is not a value of refresh_timeout"):
        run("alter stream table s set (refresh_timeout = '-1s')")


def test_a_comparison_has_a_limit_on_the_command_line_and_in_python(cli, slept, shared_spark):
    answer = cli("verify", "naps_taken", "--timeout", "1", role=TRICKLE)
    assert answer.exit_code == 1
    assert "PGT-R008" in answer.err
    assert "did not finish within 1 s" in answer.err
    assert "--timeout" in answer.err
    with pytest.raises(VerifyTimedOut, match="within 1 s"):
        slept.verify("naps_taken", timeout=1)
    assert cli("verify", "naps_taken", "--timeout", "0", role=TRICKLE).exit_code == 0
    assert cli("verify", "--timeout", "-1", role=TRICKLE).exit_code == 2
