"""What a server needs from the host: a port, an account, reachable programs, and a guard process."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pgtrickle.model.errors import ConnectionFailed

# below the kernel's range for outgoing connections,
# so that no other process takes our port while the server restarts
_PORTS = range(20_000, 32_000)


class Account(NamedTuple):
    """The account that the server runs as; None everywhere means our own."""

    user: int | None = None
    group: int | None = None
    extra_groups: list[int] | None = None


def free_port() -> int:
    """A free port on loopback."""
    for port in random.sample(_PORTS, 50):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ConnectionFailed("no free port on 127.0.0.1 for the embedded PostgreSQL", hint="stop other servers")


def copy_binaries(binaries: Path, target: Path) -> Path:
    """Copy PostgreSQL and the libraries of its wheel, which it loads from a fixed relative path."""
    installed, package = binaries.parent, binaries.parent.parent
    copy = target / package.name / installed.name
    shutil.copytree(installed, copy, symlinks=True, dirs_exist_ok=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name, symlinks=True, dirs_exist_ok=True)
    return copy / "bin"


def unprivileged_account() -> Account:
    """The account for the server. PostgreSQL refuses root; then it is `postgres` or else `nobody`."""
    if os.geteuid() != 0:
        return Account()
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid, [])
    raise ConnectionFailed("PostgreSQL does not run as root", hint="start pgtrickle as another user")


def start_guard(pid: int, how: signal.Signals = signal.SIGINT) -> subprocess.Popen[bytes]:
    """Start a process that stops the server if we die, which closes the pipe that it reads from."""
    wait_and_stop = 'read -r _; kill -"$1" "$0" 2>/dev/null'
    return subprocess.Popen(
        ["sh", "-c", wait_and_stop, str(pid), str(how.value)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_guard(running: subprocess.Popen[bytes] | None) -> None:
    """Stop the guard. From now on we stop the server ourselves."""
    if running is not None:
        running.kill()
        running.wait()
        if running.stdin is not None:
            running.stdin.close()
