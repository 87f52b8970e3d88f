"""Copies of whole servers: files of one that is stopped, started beside it or in its place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
