"""The same code runs where the workers are other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.fixtures.bags import assert_same_bag
from tests.fixtures.class_archive import QUICK_JVM
from tests.fixtures.databases import APP


def spark_home(directory: Path) -> Path:
    """Spark as installed, but with room of its own: its local cluster works below its home.

    Its executors live for seconds, as the driver does.
    """
    directory.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (directory / entry.name).symlink_to(entry)
    configuration = directory / "conf"
    configuration.mkdir()
    (configuration / "spark-defaults.conf").write_text(f"spark.executor.extraJavaOptions {QUICK_JVM}\n")
    return directory


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_cluster_reads_and_stages_and_a_repeated_task_counts_once(connection, dsn, staging, tmp_path):
    staging("n int")
    command = [sys.executable, "-m", "tests.pipeline.on_cluster", "local-cluster[2,1,1024]", dsn]
    ran = subprocess.run(
        [*command, str(tmp_path / "died")],
        env={**os.environ, "SPARK_HOME": str(spark_home(tmp_path / "spark"))},
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    staged = json.loads(ran.stdout)
    assert staged["rows"] == 20
    attempts = [tuple(attempt) for attempt in staged["attempts"]]
    found = connection.execute("select part, attempt, n from pgtrickle_state.staged where run = 7").fetchall()
    assert len(found) == 30
    assert sorted(n for part, attempt, n in found if (part, attempt) in attempts) == list(range(20))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_executors_that_are_killed_cost_no_row_and_suspend_no_stream_table(
    source, app, admin, database, dsn, tmp_path
):
    admin.execute(
        "create function checked(int) returns int language plpgsql immutable parallel restricted as"
        " 'begin perform pg_advisory_xact_lock_shared(42); return $1; end'"
    )
    orders = source("orders(id int primary key, amount int)")
    orders.change("insert into orders select n, n from generate_series(1, 300) n")
    query = "select id, checked(amount) as amount from orders"
    app.execute("select pgtrickle.create_stream_table('checked', %s, '1s', 'DIFFERENTIAL')", (query,))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.dying_executors"],
        env={
            **os.environ,
            "SPARK_HOME": str(spark_home(tmp_path / "spark")),
            "PGTRICKLE_DSN": dsn,
            "PGTRICKLE_APP_DSN": database.dsn(APP),
        },
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["refresh"]["action"] == "DIFFERENTIAL"
    assert found["refresh"]["met"] >= 1
    (lost,) = found["sidecar"].pop("lost")
    assert "Spark has lost a process" in lost
    assert found["sidecar"] == {"errors": [], "status": "ACTIVE", "consecutive": 0}
    assert found["after"] == {"status": "ACTIVE", "errors": 0, "failed": [], "deaths": 0}
    assert_same_bag(app, "select * from checked", "select id, amount from orders")
