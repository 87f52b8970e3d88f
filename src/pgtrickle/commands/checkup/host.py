"""Checks of the host that runs the command: Python, Java, Spark, room for temporary files."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from pgtrickle import __version__
from pgtrickle.model.errors import JavaMissing, PgTrickleError
from pgtrickle.model.finding import Finding, failure, ok, unchecked, warning
from pgtrickle.model.settings import Settings

OLDEST_PYTHON: Final = (3, 11)
LEAST_FREE_BYTES: Final = 2 << 30
_CONNECT: Final = "sc://"


def check_python() -> Iterator[Finding]:
    """The interpreter and the package."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield failure("python", f"this is Python {found}", "use Python 3.11 or newer")
    else:
        yield ok("python", f"Python {found}, pgtrickle {__version__}")


def check_java(settings: Settings) -> Iterator[Finding]:
    """The Java that Spark would start on this host, by running it."""
    if settings.spark_master.startswith(_CONNECT):
        yield ok("java", f"not needed on this host: Spark runs at {settings.spark_master}")
        return
    from pgtrickle.pipeline.java import java_command, java_version, require_java

    try:
        require_java(os.environ)
    except JavaMissing as error:
        yield failure("java", f"on this host: {error.message}", error.hint or "install Java 17 or newer")
        return
    said = java_version(os.environ).partition("\n")[0].strip()
    yield ok("java", f"{said}, at {java_command(os.environ)}, on this host")


def check_spark(settings: Settings, is_started: bool) -> Iterator[Finding]:
    """PySpark on this host. With `is_started`, a Spark is started and computes something."""
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        yield failure("spark", "PySpark is not installed here", "pip install pgtrickle")
        return
    if not is_started:
        yield ok("spark", f"PySpark {found} is installed on this host")
        yield unchecked(
            "spark", "Spark was not started here, because that takes a while", "`pgtrickle doctor --spark`"
        )
        return
    from pgtrickle.pipeline.session import open_spark

    try:
        cache = settings.cache_directory(os.environ)
        with open_spark(settings.spark_master, cache_directory=cache) as spark:
            spark.warm()
            why_jobs = spark.programs.why_jobs
    except PgTrickleError as error:
        yield failure("spark", f"on this host: {error.message}", error.hint or "see docs/TROUBLESHOOTING.md")
        return
    yield ok("spark", f"PySpark {found} started on {settings.spark_master} and computed a small program")
    yield in_place("this host", "yes" if why_jobs is None else f"no, because {why_jobs}")


def in_place(where: str, said: str) -> Finding:
    """Whether small changes are computed in the driver."""
    if said == "yes":
        return ok("in place", f"{where}: small changes are computed in place")
    return warning(
        "in place",
        f"{where}: small changes run as Spark jobs, which is slower: {said.removeprefix('no, ')}",
        "see docs/SPARK_INTERNALS.md for what computing in place needs",
    )


def check_room() -> Iterator[Finding]:
    """The space for the temporary files of Spark on this host."""
    directory = tempfile.gettempdir()
    free = shutil.disk_usage(directory).free
    told = f"{free / (1 << 30):.1f} GB are free in {directory} on this host, where Spark spills"
    if free < LEAST_FREE_BYTES:
        yield warning("disk", told, "free some space, or set TMPDIR to a directory with more")
    else:
        yield ok("disk", told)
    yield unchecked("disk", "the disk of the database server cannot be seen through SQL")
