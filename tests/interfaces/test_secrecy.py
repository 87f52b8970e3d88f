"""A password given as an argument leaves the process list at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from pgtrickle.interfaces.cli.secrecy import given_addresses, without_dsn
from tests.fixtures.databases import APP


def test_the_address_is_taken_out_of_the_arguments():
    assert without_dsn(["list", "--json"]) == (["list", "--json"], {})
    assert without_dsn(["list", "--dsn", "a", "--json"]) == (["list", "--json"], {"PGTRICKLE_DSN": "a"})
    assert without_dsn(["list", "--dsn=a", "--dsn=b"]) == (["list"], {"PGTRICKLE_DSN": "b"})
    assert without_dsn(["list", "--dsn"]) == (["list", "--dsn"], {})
    assert without_dsn(["drop", "--", "--dsn", "a"]) == (["drop", "--", "--dsn", "a"], {})
    assert without_dsn(["run", "--dsn", "a b", "--json", "--dsn=c"]) == (
        ["run", "--json", "--dsn="],
        {"PGTRICKLE_DSN": "a b\nc"},
    )
    # the process that takes over moves nothing again
    assert without_dsn(["run", "--json", "--dsn="]) == (["run", "--json", "--dsn="], {})
    assert given_addresses([""], {"PGTRICKLE_DSN": "a b\nc"}) == ("a b", "c")
    assert given_addresses(None, {"PGTRICKLE_DSN": "a"}) == ()
    assert without_dsn(["run", "--listen-dsn", "a b"]) == (["run"], {"PGTRICKLE_LISTEN_DSN": "a b"})


def test_the_password_is_not_in_the_process_title(database, source, app):
    source("orders(id int primary key)")
    command = [sys.executable, "-m", "pgtrickle.interfaces.cli", "create", "new", "--query-file", "-"]
    with subprocess.Popen(
        [*command, "--dsn", database.dsn(APP)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        _await(lambda: _title(process.pid).endswith("create new --query-file -"))
        title = _title(process.pid)
        out, _ = process.communicate("select id from orders")
    assert database.server.password not in title
    assert (process.returncode, "Created stream table public.new" in out) == (0, True)


def _title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()


def _await(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
