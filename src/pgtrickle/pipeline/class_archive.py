"""An archive of Spark's classes, with which the JVM starts in about half the time.

A JVM without an archive lists the classes that it loads. Once it is ready, another JVM writes them to an
archive in the background, which later starts map into memory (application class-data sharing). The archive is
code, so its directory must belong to us and nobody else may write to it. A JVM ignores an archive that does
not fit.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pgtrickle.pipeline.java import java_command, java_version

_QUIET: Final = "-Xshare:auto -Xlog:disable -Xlog:all=off"
_SPACE_BYTES: Final = 1 << 30
"""An archive takes about 200 MB; without this much free space none is written."""


@dataclass(slots=True)
class ClassArchive:
    """The archive for one Java and one Spark; `options` are those of a JVM that uses or prepares it."""

    path: Path
    classes: Path
    """The list of loaded classes, in the directory of the running JVM."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _is_closed: bool = False

    @property
    def options(self) -> str:
        """Options of the JVM: use the archive, or list the classes for it."""
        if self.is_written:
            return f"-XX:SharedArchiveFile={self.path} {_QUIET}"
        return f"-XX:DumpLoadedClassList={self.classes} {_QUIET}"

    @property
    def is_written(self) -> bool:
        """Whether the archive exists and nobody else could have written it."""
        with suppress(OSError):
            return _is_private(self.path.parent.lstat()) and _is_private(self.path.lstat())
        return False

    def write(self, class_path: str) -> None:
        """Write the archive from the list of classes, with little priority. Returns when it is done."""
        if self.is_written or not self.classes.exists() or " " in class_path:
            return
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(self.path.parent.lstat()) or _free_bytes(self.path.parent) < _SPACE_BYTES:
                return
            with tempfile.TemporaryDirectory(dir=self.path.parent) as place:
                new = Path(place) / "classes.jsa"
                self._process = subprocess.Popen(
                    [
                        *("nice", "-n", "19", java_command(os.environ), "-Xshare:dump"),
                        *("-Xlog:disable", "-Xlog:all=off", f"-XX:SharedClassListFile={self.classes}"),
                        *(f"-XX:SharedArchiveFile={new}", "-cp", class_path),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                if self._is_closed:
                    self.close()
                if self._process.wait() == 0 and new.exists():
                    new.chmod(0o600)
                    os.replace(new, self.path)
                    self._remove_others()

    def close(self) -> None:
        """Stop writing."""
        self._is_closed = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _remove_others(self) -> None:
        """Remove archives of other versions of Java and Spark."""
        for other in self.path.parent.glob("spark-*.jsa"):
            if other != self.path:
                other.unlink(missing_ok=True)


def find_archive(cache_directory: Path | None, spark_home: Path, directory: Path) -> ClassArchive | None:
    """The archive for this Java and this Spark in a cache directory, whether it is written or not.

    None without a cache directory, or if its name cannot be part of the options of a JVM.
    """
    if cache_directory is None or " " in f"{cache_directory}{directory}":
        return None
    seen = hashlib.sha256(java_version(os.environ).encode())
    with suppress(OSError):
        for jar in sorted((spark_home / "jars").iterdir()):
            found = jar.stat()
            seen.update(f"{jar} {found.st_size} {found.st_mtime_ns}\n".encode())
    path = cache_directory / "classes" / f"spark-{seen.hexdigest()[:16]}.jsa"
    return ClassArchive(path, directory / "classes.txt")


def _is_private(found: os.stat_result) -> bool:
    is_ours = found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode)
    return is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _free_bytes(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
