"""The cache on the host: a file for each compiled query, shared by all processes of one user.

A file decides which SQL a sidecar runs. So directories are used only if they belong to us and nobody else can
write to them, and only regular files of ours are read. A file is written under another name and then moved,
so a reader sees all of it or nothing; damaged files are rejected.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

KEPT_SECONDS: Final = 30 * 24 * 3600
"""Files that were not read for this long are removed."""
_MAX_BYTES: Final = 16 << 20
_NEW: Final = "new-"


class HostFiles:
    """Bytes by database and name. A problem with a file is a miss, never an error."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pruned = False

    def read(self, database: str, name: str) -> bytes | None:
        """The bytes under a name; None if there is no such file, or it is not ours."""
        path = self._directory / database / name
        try:
            if not _is_ours(path.parent):
                return None
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(handle, "rb") as file:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or not _is_private(found):
                    return None
                os.utime(handle)
                return file.read(_MAX_BYTES)
        except OSError:
            return None

    def write(self, database: str, name: str, data: bytes, *, still_used: str = "") -> None:
        """Write the bytes under a name, atomically; do nothing if that is not safe.

        Files of the same database whose names do not begin with `still_used` are out of use.
        """
        place = self._directory / database
        try:
            self._directory.parent.mkdir(parents=True, exist_ok=True)
            for made in (self._directory, place):
                made.mkdir(mode=0o700, exist_ok=True)
            if not _is_ours(self._directory) or not _is_ours(place) or len(data) > _MAX_BYTES:
                return
            handle, temporary = tempfile.mkstemp(dir=place, prefix=_NEW)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(temporary, place / name)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError:
            return
        self._prune(database, still_used)

    def clear(self, database: str) -> int:
        """Remove all files of a database; returns their number."""
        return sum(_remove(path) for path in self._files(database))

    def _files(self, database: str) -> Iterator[Path]:
        place = self._directory / database
        try:
            if _is_ours(place):
                yield from list(place.iterdir())
        except OSError:
            return

    def _prune(self, own: str, still_used: str) -> None:
        """Remove files of all databases that are out of use; only once in each process."""
        if self._pruned:
            return
        self._pruned = True
        oldest = time.time() - KEPT_SECONDS
        try:
            databases = [place.name for place in self._directory.iterdir()]
        except OSError:
            return
        for database in databases:
            for path in self._files(database):
                try:
                    is_old = path.lstat().st_mtime < oldest
                except OSError:
                    continue
                if is_old or (database == own and not path.name.startswith((still_used, _NEW))):
                    _remove(path)


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _is_ours(place: Path) -> bool:
    found = place.lstat()
    return stat.S_ISDIR(found.st_mode) and _is_private(found)


def _is_private(found: os.stat_result) -> bool:
    """Whether it belongs to us and nobody else can write to it."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
