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
from pgtrickle.refresh import claim, waves
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute import apply_result, compute
from tests.fixtures.poolers import POOL_SIZE
from tests.fixtures.spark import join_spark

STEPS: dict[str, tuple[Any, str]] = {
    "claim": (claim, "claim_all"),
    "read": (compute, "read_all"),
    "compute": (compute, "run_small"),
    "apply": (apply_result, "apply_changes"),
    "commit": (waves, "commit_refreshes"),
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
