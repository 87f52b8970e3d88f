"""Copies of whole servers: files of one that is stopped, started beside it or in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from pgtrickle.embedded import Server
from pgtrickle.embedded.host import unprivileged_account
from tests.fixtures.servers import SETTINGS, binaries


@contextmanager
def copied_server(original: Server, version: int) -> Iterator[Server]:
    """A standby with the files of a server that is stopped; it replays what it has and waits for more."""
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-test-"))
    directory.chmod(0o755)
    try:
        for part in ("data", "password"):
            _copy(original.directory / part, directory / part)
        signal = directory / "data" / "standby.signal"
        signal.touch()
        give_to_server(signal)
        with Server(directory, binaries(version), SETTINGS) as server:
            yield server
    finally:
        shutil.rmtree(directory)


def give_to_server(*paths: Path) -> None:
    """Let the account that runs PostgreSQL own files."""
    account = unprivileged_account()
    if account.user is None or account.group is None:
        return
    for path in paths:
        for each in (path, *(path.rglob("*") if path.is_dir() else ())):
            os.chown(each, account.user, account.group)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
    give_to_server(target)


@contextmanager
def streaming_standby(primary: Server, version: int, settings: Mapping[str, str]) -> Iterator[Server]:
    """A standby of a running server, which receives its log; it can keep logical slots up to date."""
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-test-"))
    directory.chmod(0o755)
    address = f"host=127.0.0.1 port={primary.port} user=postgres password={primary.password} dbname=postgres"
    try:
        with psycopg.connect(primary.dsn(), autocommit=True) as admin:
            admin.execute("select pg_create_physical_replication_slot('standby', true)")
        shutil.copy2(primary.directory / "password", directory / "password")
        subprocess.run(
            [
                binaries(version) / "pg_basebackup",
                "-D",
                directory / "data",
                "-d",
                address,
                "-X",
                "stream",
                "-c",
                "fast",
            ],
            check=True,
            capture_output=True,
        )
        (directory / "data" / "standby.signal").touch()
        (directory / "data").chmod(0o700)
        give_to_server(directory / "data")
        received = {
            "primary_conninfo": address,
            "primary_slot_name": "standby",
            "hot_standby_feedback": "on",
            "wal_receiver_status_interval": "1",
        }
        if version >= 17:
            received["sync_replication_slots"] = "on"
        with Server(directory, binaries(version), {**SETTINGS, **settings, **received}) as server:
            yield server
    finally:
        shutil.rmtree(directory)
