"""The embedded server: private, on loopback, and gone when it should be."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgtrickle.embedded import Server, Stop, embedded_server
from pgtrickle.model.errors import ConnectionFailed
from tests.fixtures.servers import EMBEDDED, SETTINGS, binaries, new_server

DIES_UNCLEANLY = """
import os, signal, sys
from pathlib import Path
from pgtrickle.embedded import Server
server = Server(Path(sys.argv[1]), Path(sys.argv[2]))
server.start()
print((server.directory / "data" / "postmaster.pid").read_text().split()[0], flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def value(server: Server, query: str) -> object:
    with psycopg.connect(server.dsn()) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def process_id(server: Server) -> int:
    return int((server.directory / "data" / "postmaster.pid").read_text().split()[0])


@pytest.mark.every_postgres
def test_a_server_of_the_asked_version_starts_with_its_settings(server, pg_version):
    assert str(value(server, "show server_version")).startswith(str(pg_version))
    assert value(server, "show max_prepared_transactions") == SETTINGS["max_prepared_transactions"]


def test_a_server_listens_on_loopback_only(server):
    assert value(server, "show listen_addresses") == "127.0.0.1"
    assert value(server, "show unix_socket_directories") == ""


def test_a_server_lets_nobody_in_without_the_password(server):
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.dsn(password="guess"))


@pytest.mark.every_postgres
@pytest.mark.parametrize("how", Stop)
def test_committed_rows_outlive_a_restart_on_the_same_address(own_server, how):
    address = own_server.dsn()
    with psycopg.connect(address) as connection:
        connection.execute("create table kept as select 42 as answer")
    own_server.restart(how)
    assert own_server.dsn() == address
    assert value(own_server, "select answer from kept") == 42


def test_a_kill_cuts_off_sessions_and_loses_what_was_not_committed(own_server):
    with psycopg.connect(own_server.dsn()) as connection:
        connection.execute("create table kept(n int)")
        connection.commit()
        connection.execute("insert into kept values (1)")
        own_server.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
        connection.close()
    own_server.start()
    assert value(own_server, "select count(*) from kept") == 0


@pytest.mark.own_server
def test_a_stopped_server_leaves_no_process():
    with new_server(EMBEDDED) as server:
        process = process_id(server)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert not server.is_running


def test_a_server_stops_when_its_starter_is_killed(own_server):
    # the files of a fixture's server, so that they are removed whatever happens here
    own_server.stop()
    starter = subprocess.Popen(
        [sys.executable, "-c", DIES_UNCLEANLY, str(own_server.directory), str(binaries(EMBEDDED))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert starter.stdout is not None
    process = int(starter.stdout.readline())
    watched = os.pidfd_open(process)
    starter.communicate(b"die\n")
    assert starter.returncode == -signal.SIGKILL
    assert _ends_within(watched, seconds=30)


def _ends_within(watched: int, seconds: int) -> bool:
    """A pidfd becomes readable when its process ends."""
    try:
        return bool(select.select([watched], [], [], seconds)[0])
    finally:
        os.close(watched)


def test_a_bad_setting_is_reported_with_the_servers_own_words(own_server):
    broken = Server(own_server.directory, binaries(EMBEDDED), {"work_mem": "plenty"})
    own_server.stop()
    with pytest.raises(ConnectionFailed, match="work_mem") as failure:
        broken.start()
    assert not broken.is_running
    assert own_server.password not in str(failure.value)


def test_the_embedded_server_gives_a_dsn_and_is_gone_afterwards(own_server):
    own_server.stop()
    with embedded_server(Path(own_server.directory)) as dsn, psycopg.connect(dsn) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)
