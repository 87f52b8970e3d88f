"""One PostgreSQL server: its files, its process, its address."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from urllib.parse import quote

from pgtrickle.embedded.host import copy_binaries, free_port, start_guard, stop_guard, unprivileged_account
from pgtrickle.model.errors import ConnectionFailed

SUPERUSER = "postgres"
READY_WITHIN_SECONDS = 60.0
_POLL_SECONDS = 0.02


class Stop(Enum):
    """How to stop a server; the value is the signal that means this to PostgreSQL."""

    FAST = signal.SIGINT
    IMMEDIATE = signal.SIGQUIT


class Server:
    """One PostgreSQL server: its files in `directory`, its programs in `binaries`.

    The port and the superuser's password do not change when it restarts.
    """

    def __init__(self, directory: Path, binaries: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory.resolve()
        self.port = free_port()
        self.password = ""
        self._settings = dict(settings or {})
        self._binaries = binaries
        self._account = unprivileged_account()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether the server process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.directory / "log"

    def dsn(self, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        """A connection string over TCP; without `password`, with the superuser's password."""
        secret = quote(self.password if password is None else password, safe="")
        return (
            f"postgresql://{quote(user, safe='')}:{secret}@127.0.0.1:{self.port}/{quote(database, safe='')}"
        )

    def start(self) -> None:
        """Start on new or existing data, and return when the server accepts connections."""
        if self.is_running:
            return
        self._make_directory()
        if not (self._data / "PG_VERSION").exists():
            self._create()
        self.password = self._secret.read_text()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program("postgres"), "-D", str(self._data), *self._options()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # Ctrl-C in the terminal must not reach the server, which has to outlive our last commit
                start_new_session=True,
                user=self._account.user,
                group=self._account.group,
                extra_groups=self._account.extra_groups,
            )
        self._guard = start_guard(self._process.pid)
        self._wait_until_ready(self._process)

    def stop(self, how: Stop = Stop.FAST) -> None:
        """Stop, and return when the process has ended."""
        if self._process is None:
            return
        stop_guard(self._guard)
        with suppress(ProcessLookupError):
            self._process.send_signal(how.value)
        try:
            self._process.wait(READY_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = self._guard = None

    def kill(self) -> None:
        """Stop as in a crash: no checkpoint, all sessions cut off, recovery at the next start."""
        self.stop(Stop.IMMEDIATE)

    def restart(self, how: Stop = Stop.FAST) -> None:
        """Stop and start again on the same port."""
        self.stop(how)
        self.start()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def _secret(self) -> Path:
        return self.directory / "password"

    def _program(self, name: str) -> str:
        return str(self._binaries / name)

    def _options(self) -> list[str]:
        fixed = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            # TCP is enough, and the path of a socket may be too long for the kernel
            "unix_socket_directories": "",
        }
        return [f"--{name}={value}" for name, value in (self._settings | fixed).items()]

    def _make_directory(self) -> None:
        """Create the directory and a random password, and give the server's account access."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._data.mkdir(mode=0o700, exist_ok=True)
        if not self._secret.exists():
            self._secret.touch(mode=0o600)
            self._secret.write_text(secrets.token_urlsafe(24))
        if self._account.user is not None and self._account.group is not None:
            for path in (self._secret, self._data):
                os.chown(path, self._account.user, self._account.group)
            self._ensure_access()

    def _ensure_access(self) -> None:
        """Check that the server's account can enter the directory; copy programs that it cannot reach."""
        if self._run(["test", "-x", str(self._data)]).returncode != 0:
            raise ConnectionFailed(
                f"{self.directory} cannot be entered by the account that PostgreSQL runs as",
                hint="PostgreSQL does not run as root: give a directory that others may enter, as below /tmp",
            )
        if self._run(["test", "-x", self._program("postgres")]).returncode != 0:
            self._binaries = copy_binaries(self._binaries, self.directory / "programs")

    def _create(self) -> None:
        """Create an empty cluster whose superuser has the password."""
        where = [self._program("initdb"), "-D", str(self._data), "-U", SUPERUSER, f"--pwfile={self._secret}"]
        done = self._run([*where, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
        if done.returncode != 0:
            raise ConnectionFailed(
                f"initdb failed in {self.directory}: {done.stderr.strip()}",
                hint="give an empty directory on a disk with free space",
            )

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=self._account.user,
            group=self._account.group,
            extra_groups=self._account.extra_groups,
        )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while not self._is_ready(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                said = self.log.read_text(errors="replace").splitlines()[-3:]
                self.stop(Stop.IMMEDIATE)
                raise ConnectionFailed(
                    f"the embedded PostgreSQL in {self.directory} did not start: {' | '.join(said)}",
                    hint=f"its messages are in {self.log}",
                )
            time.sleep(_POLL_SECONDS)

    def _is_ready(self, pid: int) -> bool:
        """Whether `postmaster.pid` names this process in its first line and says ready in its last."""
        try:
            lines = (self._data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        return bool(lines) and lines[0] == str(pid) and lines[-1] == "ready"
