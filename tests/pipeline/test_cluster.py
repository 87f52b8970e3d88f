"""The same code runs where the workers are other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest


def spark_home(directory: Path) -> Path:
    """Spark as installed, but with room of its own: its local cluster works below its home."""
    directory.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (directory / entry.name).symlink_to(entry)
    return directory


@pytest.mark.slow
@pytest.mark.spark
def test_a_cluster_reads_and_stages_and_a_repeated_task_counts_once(connection, dsn, staging, tmp_path):
    staging("n int")
    command = [sys.executable, "-m", "tests.pipeline.on_cluster", "local-cluster[2,1,1024]", dsn]
    ran = subprocess.run(
        [*command, str(tmp_path / "died")],
        env={**os.environ, "SPARK_HOME": str(spark_home(tmp_path / "spark"))},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    staged = json.loads(ran.stdout)
    assert staged["rows"] == 20
    attempts = [tuple(attempt) for attempt in staged["attempts"]]
    found = connection.execute("select part, attempt, n from pgtrickle_state.staged where run = 7").fetchall()
    assert len(found) == 30
    assert sorted(n for part, attempt, n in found if (part, attempt) in attempts) == list(range(20))
