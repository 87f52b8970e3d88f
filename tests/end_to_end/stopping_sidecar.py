"""A sidecar that refreshes one stream table and halts at a step, waiting to be killed.

Run as: python -m tests.end_to_end.stopping_sidecar NAME STEP, with the dsn in PGTRICKLE_DSN. It starts
a JVM, unless the environment names the gateway of one that runs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pgtrickle.commands.refresh import refresh
from pgtrickle.pipeline.session import open_spark
from pgtrickle.refresh import claiming, differential, step
from pgtrickle.refresh.engine import Engine
from tests.fixtures.poolers import POOL_SIZE
from tests.fixtures.spark import join_spark

STEPS: dict[str, tuple[Any, str]] = {
    "claim": (claiming, "claim"),
    "read": (differential, "read_all"),
    "compute": (differential, "run_small"),
    "apply": (differential, "apply_changes"),
    "commit": (step, "commit_refresh"),
}
"""After which function of ours the process halts."""


def halting(function: Callable[..., Any]) -> Callable[..., Any]:
    def halt(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        print("halted", flush=True)
        signal.pause()
        return result

    return halt


def main(name: str, halt_after: str) -> None:
    if halt_after in STEPS:
        module, function = STEPS[halt_after]
        setattr(module, function, halting(getattr(module, function)))
    start = join_spark if "PYSPARK_GATEWAY_PORT" in os.environ else open_spark
    engine = Engine(os.environ["PGTRICKLE_DSN"], start, max_connections=POOL_SIZE)
    print("started", flush=True)
    refresh(engine, name)


if __name__ == "__main__":
    main(*sys.argv[1:])
