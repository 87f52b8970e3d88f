"""`python -m tests.lanes fast|test|all`: run a lane in parts, two at a time, and fail if one of them fails.

The parts of a lane are separate runs of pytest. Each has its own server and Spark, and together they cover
the lane: what one part selects, another one excludes by the same mark or path.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Final

from tests.fixtures.lanes import Lane

LONG_FUZZ_SECONDS: Final = 600
END_TO_END: Final = "tests/end_to_end"
CORE: Final = f"{END_TO_END}/test_core.py"
DISTRIBUTED: Final = ("--path", "distributed")
PLAN: Final = "tests/plan"
CAPTURE_AND_CATALOG: Final = ("tests/capture", "tests/catalog")
WITHOUT_LARGE: Final = tuple(f"--ignore={directory}" for directory in (PLAN, *CAPTURE_AND_CATALOG))
AT_A_TIME: Final = min(2, os.cpu_count() or 1)
"""A part keeps one core busy for most of its time, and has a JVM of its own."""


@dataclass(frozen=True, slots=True)
class Part:
    """One run of pytest."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """How a part ended, and what pytest counted."""

    part: Part
    exit_code: int
    counts: Counter[str]
    seconds: float = 0.0


# The longest first, so that the last ones to run are short. In `make test`, parts without Spark come before
# them: meanwhile, the archive of its classes is made.
LANES: Final[dict[Lane, tuple[Part, ...]]] = {
    Lane.FAST: (
        Part("others on the server", (*WITHOUT_LARGE, "-m", "database")),
        Part("capture and catalog on the server", (*CAPTURE_AND_CATALOG, "-m", "database")),
        Part("plans on the server", (PLAN, "-m", "database")),
        Part("without a server", ("-m", "not database")),
    ),
    Lane.TEST: (
        Part("others without Spark", (*WITHOUT_LARGE, "-m", "not spark")),
        Part("capture and catalog", (*CAPTURE_AND_CATALOG, "-m", "not spark")),
        Part("others on Spark", (f"--ignore={END_TO_END}", "-m", "spark")),
        Part("end-to-end on Spark", (END_TO_END, "-m", "spark")),
        Part("plans", (PLAN, "-m", "not spark")),
        Part("light, through PgBouncer", (END_TO_END, "-m", "light", "--through", "pgbouncer")),
        Part("light, in pooler compatibility mode", (END_TO_END, "-m", "light", "--compatible")),
        Part("light, captured from the log", (END_TO_END, "-m", "light", "--cdc", "wal")),
    ),
    Lane.ALL: (
        Part("PostgreSQL 18", (f"--fuzz-seconds={LONG_FUZZ_SECONDS}", "--pg=18")),
        Part("PostgreSQL 15", (f"--fuzz-seconds={LONG_FUZZ_SECONDS}", "--pg=15")),
        Part("end-to-end, through PgBouncer", (END_TO_END, "--through", "pgbouncer")),
        Part("end-to-end, captured from the log", (END_TO_END, "--cdc", "wal")),
        Part("core, on a standalone cluster", (CORE, "--pg=18", "--spark-master=standalone", *DISTRIBUTED)),
        Part("core, over Spark Connect", (CORE, "--pg=18", "--spark-master=connect")),
        Part("light, in pooler compatibility mode", (END_TO_END, "-m", "light", "--compatible")),
    ),
}

_SUMMARY: Final = re.compile(r"^=+ (.*) in [0-9.]+s\b.*=+$")
_COUNT: Final = re.compile(r"(\d+) (\w+)")
_SINGULAR: Final = {"error": "errors", "warning": "warnings"}


def counts_of(output: str) -> Counter[str]:
    """What the closing line of a run of pytest counts; nothing if it has none."""
    lines = [found[1] for line in output.splitlines() if (found := _SUMMARY.match(line))]
    pairs = _COUNT.findall(lines[-1]) if lines else []
    return Counter({_SINGULAR.get(what, what): int(number) for number, what in pairs})


def summary(results: list[Result], seconds: float) -> str:
    """One closing line for all parts, in the form of pytest's own."""
    total: Counter[str] = sum((result.counts for result in results), Counter())
    # a part that broke off has no closing line
    total["errors"] += sum(1 for result in results if result.exit_code and not _tells_why(result))
    order = ("failed", "errors", "passed", "skipped", "xfailed", "deselected", "warnings")
    said = ", ".join(f"{total[what]} {what}" for what in order if total[what])
    line = f" {said or 'no tests ran'} in {seconds:.2f}s "
    return line.center(max(80, len(line) + 6), "=")


def _tells_why(result: Result) -> bool:
    return bool(result.counts["failed"] or result.counts["errors"])


class Runner:
    """Runs the parts of one lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._printing = Lock()
        self._running: set[subprocess.Popen[str]] = set()

    def run(self, part: Part) -> Result:
        """Run a part, and print what pytest said when it has ended."""
        options = (f"--lane={self._lane.value}", "-p", "no:cacheprovider")
        began = time.monotonic()
        with self._printing:
            _say(f"{part.name}: started")
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *part.arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            self._running.add(process)
            said, _ = process.communicate()
            self._running.discard(process)
        with self._printing:
            _say(f"\n{part.name}:\n{said}")
        return Result(part, process.returncode, counts_of(said), time.monotonic() - began)

    def interrupt(self) -> None:
        """Let the parts that run stop their servers, and end."""
        for process in tuple(self._running):
            process.send_signal(signal.SIGINT)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(lane: Lane) -> int:
    """Run a lane; zero if all of its parts have passed."""
    began, runner = time.monotonic(), Runner(lane)
    with ThreadPoolExecutor(AT_A_TIME) as workers:
        try:
            results = list(workers.map(runner.run, LANES[lane]))
        except KeyboardInterrupt:
            runner.interrupt()
            raise
    for result in results:
        ended = "failed" if result.exit_code else "passed"
        _say(f"{result.part.name}: {ended} in {result.seconds:.0f} s")
    _say(summary(results, time.monotonic() - began))
    return int(any(result.exit_code for result in results))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # started in the background by a shell, this would ignore SIGINT
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(Lane(sys.argv[1])))
