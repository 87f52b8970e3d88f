"""`pgtrickle alerts` shows what was kept, as text and as JSON."""

from __future__ import annotations

import json

import pytest

from pgtrickle.catalog.alerts import alert


@pytest.fixture(autouse=True)
def told(connection, source, app):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    alert(connection, "refresh_failed", pgt_id=1, error="PGT-S001", sqlstate=None)
    alert(connection, "buffer_growth_warning", source="public.orders", bytes=5, slowest_readers=["public.s"])
    connection.commit()


def test_each_alert_is_a_line(cli):
    lines = cli("alerts").out.splitlines()
    assert lines[0].endswith("  refresh_failed  public.s  error=PGT-S001")
    assert lines[1].endswith('bytes=5 source=public.orders slowest_readers=["public.s"]')
    assert len(lines) == 2


def test_json_has_every_field(cli):
    first, second = json.loads(cli("alerts", "--since", "1h", "--json").out)
    assert first["event"] == "refresh_failed"
    assert first.keys() == {"alert_id", "at", "event", "stream_table", "details"}
    assert second["stream_table"] is None


def test_without_alerts_it_says_so(cli):
    assert cli("alerts", "--since", "2100-01-01").out == "No alerts.\n"


def test_a_moment_that_cannot_be_read_is_refused(cli):
    answer = cli("alerts", "--since", "soon")
    assert answer.exit_code != 0
    assert "'soon' is neither a time nor a length of time" in answer.err
