"""A real standby of a server: a base backup that streams, with feedback and a physical slot."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from pgtrickle.embedded import Server, bundled_binaries
from tests.fixtures.servers import LOGICAL, SETTINGS


@contextmanager
def standby_of(primary: Server, **settings: str) -> Iterator[Server]:
    """Start a standby; it is stopped and removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-standby-"))
    directory.chmod(0o755)
    slot = f"standby_{secrets.token_hex(4)}"
    with psycopg.connect(primary.dsn(), autocommit=True) as admin:
        admin.execute("select pg_create_physical_replication_slot(%s, true)", (slot,))
    followed = {
        "hot_standby_feedback": "on",
        "wal_receiver_status_interval": "1",
        "primary_conninfo": primary.dsn(),
        "primary_slot_name": slot,
    }
    standby = Server(directory, bundled_binaries(), {**SETTINGS, **LOGICAL, **followed, **settings})
    try:
        standby._make_directory()
        standby._secret.write_text(primary.password)
        where = ["-D", str(standby._data), "-d", primary.dsn(), "-c", "fast", "-R", "--no-sync"]
        done = standby._run([standby._program("pg_basebackup"), *where])
        assert done.returncode == 0, done.stderr
        standby.start()
        yield standby
    finally:
        standby.stop()
        shutil.rmtree(directory)
        with psycopg.connect(primary.dsn(), autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots"
                " where slot_name = %s",
                (slot,),
            )
            admin.execute("select pg_drop_replication_slot(%s)", (slot,))


@contextmanager
def telling_what_runs(primary: Server) -> Iterator[None]:
    """Let the primary tell its standbys often which transactions are running, as one that is in use does."""
    stop = threading.Event()

    def tell() -> None:
        with psycopg.connect(primary.dsn(), autocommit=True) as admin:
            while not stop.wait(0.05):
                admin.execute("select pg_log_standby_snapshot()")

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
