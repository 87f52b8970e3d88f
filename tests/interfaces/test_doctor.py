"""`pgtrickle doctor` as a shell sees it: text, JSON, exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def run_doctor(dsn: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "pgtrickle.interfaces.cli", "doctor", *options]
    environment = {**os.environ, "PGTRICKLE_DSN": dsn}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_error_is_told_with_its_remedy_and_in_the_exit_status(cli):
    answer = cli("doctor", role="trickle")
    assert (answer.exit_code, answer.err) == (1, "")
    assert "ERROR      sidecars: no sidecar serves this database" in answer.out
    assert "→ `pgtrickle run`" in answer.out
    assert answer.out.rstrip().splitlines()[-1].startswith("2")
    assert "OK         triggers: " in answer.out


def test_without_an_error_the_exit_status_is_0(cli, admin):
    admin.execute(
        "insert into pgtrickle.pgt_sidecars (sidecar_id, host, process, version, started_at, seen_at,"
        " workers, busy, queued, vitals)"
        " select gen_random_uuid(), 'here', 1, '0.1.0', now(), clock_timestamp(), 4, 0, 0, '{}'"
    )
    assert cli("doctor", role="trickle").exit_code == 0


def test_problems_can_be_shown_alone(cli):
    out = cli("doctor", "--problems", role="trickle").out
    assert not [line for line in out.splitlines() if line.startswith("OK ")]


def test_json_has_every_finding(cli):
    answer = cli("doctor", "--json", role="trickle")
    found = json.loads(answer.out)
    assert answer.exit_code == 1
    assert {"check", "severity", "message", "remedy"} == set(found[0])
    assert {one["severity"] for one in found} >= {"OK", "ERROR", "UNCHECKED"}


def test_a_remedy_is_a_command_in_the_language_of_the_command_line(cli, admin, source):
    source("orders(id int primary key)")
    cli("create", "kept", "-q", "select id from orders")
    admin.execute("update pgtrickle.pgt_stream_tables set status = 'SUSPENDED'")
    assert "→ pgtrickle resume public.kept" in cli("doctor", role="trickle").out.replace("`", "")
