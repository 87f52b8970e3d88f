"""The same code runs where the workers are other processes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_cluster_reads_and_stages_and_a_repeated_task_counts_once(connection, dsn, staging, tmp_path):
    staging("n int")
    command = [sys.executable, "-m", "tests.pipeline.on_cluster", "local-cluster[2,1,1024]", dsn]
    ran = subprocess.run(
        [*command, str(tmp_path / "died")], capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr
    staged = json.loads(ran.stdout)
    assert staged["rows"] == 20
    attempts = [tuple(attempt) for attempt in staged["attempts"]]
    found = connection.execute("select part, attempt, n from pgtrickle_state.staged where run = 7").fetchall()
    assert len(found) == 30
    assert sorted(n for part, attempt, n in found if (part, attempt) in attempts) == list(range(20))
