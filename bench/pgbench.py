"""An application that writes as fast as it can, or at a pace: PostgreSQL's own pgbench."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pgtrickle.embedded import bundled_binaries

CLIENTS = 4


@dataclass(frozen=True, slots=True)
class Ran:
    """What the application got."""

    per_second: float
    milliseconds: float
    latencies: tuple[float, ...] = ()
    """The milliseconds of each transaction, from the moment that it was to start."""


def pgbench(dsn: str, scripts: Sequence[str], seconds: int, *, per_second: int | None = None) -> Ran:
    """Four clients run one of the scripts, drawn anew each time; at most so many per second, if told."""
    address = urlsplit(dsn)
    environment = {**os.environ, "PGPASSWORD": unquote(address.password or "")}
    where = ["-h", str(address.hostname), "-p", str(address.port), "-U", str(address.username)]
    pace = [] if per_second is None else ["-R", str(per_second)]
    with tempfile.TemporaryDirectory(prefix="pgtrickle-pgbench-") as directory:
        files: list[str] = []
        for number, script in enumerate(scripts):
            path = Path(directory) / f"{number}.sql"
            path.write_text(script)
            files += ["-f", str(path)]
        log = ["-l", f"--log-prefix={directory}/log"]
        how = ["-n", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds), *files, *pace, *log]
        done = subprocess.run(
            [bundled_binaries() / "pgbench", *where, *how, address.path.removeprefix("/")],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        lines = [line for path in Path(directory).glob("log*") for line in path.read_text().splitlines()]
    latencies = tuple(float(line.split()[2]) / 1000 for line in lines)
    return Ran(
        _told(done.stdout, r"tps = ([\d.]+)"), _told(done.stdout, r"latency average = ([\d.]+) ms"), latencies
    )


def _told(output: str, pattern: str) -> float:
    found = re.search(pattern, output)
    assert found is not None, output
    return float(found[1])
