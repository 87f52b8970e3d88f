"""Where Spark's tasks find the database, without any secret.

What a task is given is pickled, and Spark may show or store it: in plans, logs, event logs and its pages. So
it contains the address without passwords, and the name of a private file of this machine with all of it. A
task on this machine reads the file. On another machine, libpq finds the password where it always looks: in a
password file, a service file, or the environment of the executor.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from pgtrickle.model.errors import ConnectionFailed, ExecutorCannotConnect
from pgtrickle.postgres.addresses import address_parts, without_secrets
from pgtrickle.postgres.connection import connect
from pgtrickle.postgres.pinned import PinnedConnection


@dataclass(frozen=True, slots=True)
class TaskAddress:
    """An address that may be shown, and the file that completes it on the machine of the driver."""

    shown: str
    file: str | None = None

    def connect(self) -> PinnedConnection:
        """Open a connection from a task; the error says on which machine that failed."""
        try:
            return connect(self._dsn(), application_name="pgtrickle task")
        except ConnectionFailed as failure:
            raise ExecutorCannotConnect(
                f"a Spark executor on {socket.gethostname()} {failure.message}",
                hint="let this machine reach the server, and give its executors the password in a passfile,"
                " see --task-dsn",
            ) from None

    def _dsn(self) -> str:
        if self.file is None:
            return self.shown
        try:
            return Path(self.file).read_text()
        except OSError:
            # another machine, or another user
            return self.shown


class TaskAddresses:
    """The addresses of the databases that the tasks of one Spark read, and their private files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._found: dict[str, TaskAddress] = {}

    def of(self, dsn: str) -> TaskAddress:
        """What tasks are given for an address; a file is written only if it has a secret."""
        with self._lock:
            if dsn not in self._found:
                shown = without_secrets(dsn)
                has_secret = address_parts(dsn).keys() - address_parts(shown).keys()
                self._found[dsn] = TaskAddress(shown, self._write(dsn) if has_secret else None)
            return self._found[dsn]

    def close(self) -> None:
        """Remove the files."""
        with self._lock:
            self._found.clear()
            if self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
                self._directory = None
                atexit.unregister(self.close)

    def _write(self, dsn: str) -> str:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="pgtrickle-tasks-"))
            atexit.register(self.close)
        # it is created for this user alone, like its directory
        handle, name = tempfile.mkstemp(dir=self._directory)
        with os.fdopen(handle, "w") as file:
            file.write(dsn)
        return name
