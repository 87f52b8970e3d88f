"""Servers we cannot work with: each is refused with its own line and exit code."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pgtrickle.embedded import Server
from pgtrickle.embedded.host import free_port, unprivileged_account
from tests.fixtures.databases import APP
from tests.fixtures.servers import SETTINGS, binaries

SECRET = "pass-word-3141"
COMMANDS = [["install"], ["list"], ["create", "new", "-q", "select 1 as a"], ["run"], ["refresh", "x"]]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_an_unreachable_server(arguments, cli):
    answer = cli(*arguments, dsn=f"postgresql://app:{SECRET}@127.0.0.1:{free_port()}/shop")
    assert (answer.exit_code, answer.out) == (3, "")
    assert answer.err.startswith("error PGT-C001: cannot connect to shop at 127.0.0.1:")
    assert answer.err.count("\n") == 1
    assert SECRET not in answer.err


def test_a_wrong_password_is_not_repeated(cli, database):
    answer = cli("list", dsn=database.server.dsn(database.name, APP, SECRET))
    assert (answer.exit_code, "PGT-C001" in answer.err, SECRET in answer.err) == (3, True, False)


def test_an_address_that_is_none(cli):
    answer = cli("list", dsn=f"postgresql://app:{SECRET}@[")
    assert (answer.exit_code, "PGT-C001" in answer.err, SECRET in answer.err) == (3, True, False)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("gibberish", "the given address: it is not a connection string. Hint: Write postgresql://"),
        ("host=127.0.0.1 dbname=shop", "shop at 127.0.0.1:{port}: Connection refused. Hint: Check the host"),
        ("dbname=shop", "shop at 127.0.0.1:{port}: Connection refused. Hint: Check the host"),
    ],
)
def test_a_failed_connection_says_where_libpq_tried_and_what_to_check(dsn, said, cli, monkeypatch):
    port = str(free_port())
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", port)
    monkeypatch.setenv("PGTRICKLE_DSN", dsn)
    assert said.format(port=port) in cli("list", dsn=dsn).err


def test_without_an_address_the_ways_to_give_one_are_told(cli, monkeypatch):
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", str(free_port()))
    answer = cli("list", dsn="")
    assert (answer.exit_code, "--dsn (PGTRICKLE_DSN)" in answer.err) == (3, True)


def test_a_database_without_pgtrickle(cli, database):
    answer = cli("list", dsn=database.server.dsn("postgres"))
    assert answer.exit_code == 3
    assert answer.err == (
        "error PGT-C004: pgtrickle is not installed in this database. Hint: Run `pgtrickle install`.\n"
    )


@pytest.mark.parametrize("arguments", [["install"], ["create", "new", "-q", "select 1 as a"], ["run"]])
def test_a_database_that_refuses_writes(arguments, cli, database, admin):
    admin.execute(f"alter database {database.name} set default_transaction_read_only = on")
    answer = cli(*arguments, role="trickle")
    assert (answer.exit_code, answer.err.count("\n")) == (3, 1)
    assert answer.err.startswith("error PGT-C003: ")


def test_a_standby_is_refused_but_may_be_looked_at(cli, own_server, pg_version):
    assert cli("install", dsn=own_server.dsn()).exit_code == 0
    with _standby_of(own_server, binaries(pg_version)) as standby:
        answer = cli("install", dsn=standby.dsn())
        assert answer.err == "error PGT-C003: the server is a standby. Hint: Connect to the primary.\n"
        assert cli("create", "new", "-q", "select 1 as a", dsn=standby.dsn()).exit_code == 3
        assert cli("list", dsn=standby.dsn()).exit_code == 0


@pytest.mark.parametrize("version", ["9.6.24", "13.14", "19.0"])
def test_a_server_of_an_unknown_version(version, cli):
    with _says_to_be(version) as port:
        answer = cli("install", dsn=f"postgresql://app@127.0.0.1:{port}/shop")
    assert (answer.exit_code, answer.err.count("\n")) == (3, 1)
    assert answer.err.startswith("error PGT-C002: the server is PostgreSQL ")


def test_a_missing_java(cli, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    answer = cli("run", role="trickle")
    assert (answer.exit_code, answer.out) == (3, "")
    assert answer.err.startswith("error PGT-J001: ")
    assert answer.err.count("\n") == 1


@contextmanager
def _standby_of(primary: Server, programs: Path) -> Iterator[Server]:
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-test-"))
    directory.chmod(0o755)
    data, account = directory / "data", unprivileged_account()
    data.mkdir(mode=0o700)
    (directory / "password").write_text(primary.password)
    if account.user is not None and account.group is not None:
        shutil.chown(data, account.user, account.group)
    copying: list[str | Path] = [
        programs / "pg_basebackup",
        "-d",
        primary.dsn(),
        "-D",
        data,
        "-R",
        "-c",
        "fast",
        "--no-sync",
    ]
    try:
        subprocess.run(
            copying,
            check=True,
            capture_output=True,
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
        )
        with Server(directory, programs, SETTINGS) as server:
            yield server
    finally:
        shutil.rmtree(directory)


@contextmanager
def _says_to_be(version: str) -> Iterator[int]:
    """Whatever answers like PostgreSQL of that version until the session is ready; no such server is here."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=_greet, args=(listener, version))
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def _greet(listener: socket.socket, version: str) -> None:
    accepted, _ = listener.accept()
    with accepted:
        while struct.unpack("!ii", accepted.recv(4096)[:8])[1] != 3 << 16:
            accepted.sendall(b"N")  # neither TLS nor GSSAPI here
        settings = {"server_version": version, "client_encoding": "UTF8"}
        statuses = b"".join(_message(b"S", f"{name}\0{value}\0".encode()) for name, value in settings.items())
        accepted.sendall(_message(b"R", struct.pack("!i", 0)) + statuses + _message(b"Z", b"I"))
        accepted.recv(4096)


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body
