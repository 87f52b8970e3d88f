"""Starts the JVM of Spark, and keeps its process at hand from the first moment.

PySpark starts it by the same script, but hands out its process only once it answers. Then nobody could end a
JVM that is still starting, and its messages would reach the terminal.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.jvm.process import kill_jvm

_POLL_SECONDS: Final = 0.02
_LAST_LINES: Final = 5
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_LAUNCHER_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the short-lived JVM that composes the command line of the other one."""
_FAILED_CALL: Final = "Exception while sending command."
"""What Py4J logs if a call does not reach the JVM."""
_environment = threading.Lock()


class LaunchedJvm:
    """The process of a JVM and the directory of its files. Both are gone when this process ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._end)

    @property
    def log(self) -> Path:
        """What the JVM and the Python workers write to standard error."""
        return self.directory / "stderr.log"

    def connect(self, configuration: Mapping[str, str]) -> None:
        """Start the JVM and make it the one that PySpark uses; does nothing if PySpark has one."""
        if SparkContext._gateway is not None or _PORT in os.environ:
            return
        port, secret = self._start(configuration)
        with _environment:
            os.environ[_PORT], os.environ[_SECRET] = str(port), secret
            try:
                gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
            finally:
                del os.environ[_PORT], os.environ[_SECRET]
        gateway.proc = self._process
        SparkContext._ensure_initialized(gateway=gateway)

    def abort(self) -> None:
        """Kill a JVM that runs, and remove the files."""
        if self._process is not None:
            kill_jvm(self._process)
        self.remove_files()

    def _end(self) -> None:
        """End the JVM with this process. Calls by which Py4J still releases objects then fail quietly."""
        logging.getLogger().addFilter(lambda record: record.msg != _FAILED_CALL)
        self.abort()

    def remove_files(self) -> None:
        """Remove the files of a Spark that has stopped. Its JVM may serve another one; it ends with us."""
        if self._process is None or self._process.poll() is not None:
            atexit.unregister(self._end)
        shutil.rmtree(self.directory, ignore_errors=True)

    def last_words(self) -> str:
        """The last lines that the JVM wrote, for an error message."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return "; ".join(line.strip() for line in lines[-_LAST_LINES:])

    def _start(self, configuration: Mapping[str, str]) -> tuple[int, str]:
        """Start the process and wait for its port and the secret of its gateway."""
        command = [str(spark_home() / "bin" / "spark-submit")]
        for key, value in configuration.items():
            command += ["--conf", f"{key}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        place = Path(tempfile.mkdtemp(dir=self.directory)) / "gateway"
        environment = {"SPARK_LAUNCHER_OPTS": _LAUNCHER_OPTIONS} | os.environ
        environment |= {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(place)}
        with self.log.open("wb") as log:
            # the JVM ends when its standard input does, so it never outlives this process for long
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches the group of the terminal; this process decides when the JVM ends
                process_group=0,
            )
        while not place.exists():
            if self._process.poll() is not None:
                raise SparkFailed(f"the JVM of Spark did not start: {self.last_words()}")
            time.sleep(_POLL_SECONDS)
        return _read_connection(place)


def spark_home() -> Path:
    """Where Spark is installed."""
    return Path(_find_spark_home())


def _read_connection(place: Path) -> tuple[int, str]:
    """The port and the secret that the gateway has written, each as Java writes it."""
    data = place.read_bytes()
    port, length = struct.unpack_from("!ii", data)
    return int(port), data[8 : 8 + length].decode()
