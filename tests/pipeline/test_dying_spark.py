"""Spark may die at any time: nothing is lost, nothing is doubled, and no stream table is suspended for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.end_to_end.test_crashes import QUERY
from tests.fixtures.databases import APP
from tests.pipeline.dying_spark import DEATHS


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_spark_that_dies_at_any_step_is_started_again_and_every_table_stays_exact(source, app, database, dsn):
    source(
        "orders(id int primary key, customer int, amount int)", rows=[(i, i % 7, i * 3) for i in range(100)]
    )
    app.execute("select pgtrickle.create_stream_table('totals', %s, '1s', 'DIFFERENTIAL')", (QUERY,))
    app.execute(
        "select pgtrickle.create_stream_table('whole', 'select max(id) as m from orders', '1s', 'FULL')"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.dying_spark"],
        env={**os.environ, "PGTRICKLE_DSN": dsn, "PGTRICKLE_APP_DSN": database.dsn(APP)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert [step["deaths"] for step in found["steps"]] == list(range(1, len(DEATHS) + 1))
    assert {step["step"]: step["action"] for step in found["steps"]} == {
        "claim": "DIFFERENTIAL",
        "read": "DIFFERENTIAL",
        # what exhausts the memory goes another way the next time
        "compute": "FULL",
        "apply": "DIFFERENTIAL",
        "commit": "DIFFERENTIAL",
    }
    assert any("Spark has died while it computed" in reason for reason in found["reasons"])
    waiting = found["waiting"]
    for text in (waiting["waits"], waiting["answer"]):
        assert "the sidecar is waiting for Spark: its JVM was ended by SIGKILL" in text
    assert waiting["vitals"] == "its JVM was ended by SIGKILL"
    assert waiting["whole waits"] is None
    assert not waiting["totals was refreshed"]
    lost, returned = waiting["told"]
    assert lost == "PGT-J003"
    assert "Spark is back" in returned
    assert "the Spark session that was given to pgtrickle has ended" in found["given"].pop("told")
    assert found["given"] == {"first": "DIFFERENTIAL", "then": "DIFFERENTIAL"}
    assert found["states"] == {"totals": ["ACTIVE", 0], "whole": ["ACTIVE", 0]}
    assert found["failed"] == []
