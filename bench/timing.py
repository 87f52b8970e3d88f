"""Timing, and the phases of a refresh seen from outside."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pkgutil import resolve_name
from statistics import median
from typing import Any, Final
from unittest.mock import patch

Phases = dict[str, float]

# the first function entered owns the time until it returns, whatever it calls
_STEPS: Final[Mapping[str, str]] = {
    "pgtrickle.refresh.story.prepare_all": "prepare",
    "pgtrickle.refresh.claim.claim_all": "claim",
    "pgtrickle.refresh.claim.open_shareable": "snapshot",
    "pgtrickle.refresh.claim.open_together": "snapshot",
    "pgtrickle.refresh.faults.ground_state": "check the ground",
    "pgtrickle.refresh.waves.pending_windows": "measure the windows",
    "pgtrickle.refresh.execute.step.lock_for_apply": "lock",
    "pgtrickle.refresh.waves.lock_for_apply": "lock",
    "pgtrickle.refresh.execute.side_by_side.read_together": "read",
    "pgtrickle.refresh.execute.compute.read_all": "read",
    "pgtrickle.pipeline.programs.plan_small": "Spark: plan",
    "pgtrickle.pipeline.programs.plan_in_driver": "Spark: plan",
    "pyspark.sql.classic.dataframe.DataFrame.toArrow": "Spark: run",
    "pgtrickle.pipeline.jvm.driver_execution.DriverExecution.run": "Spark: run",
    "pgtrickle.refresh.execute.apply_result.apply_changes": "apply",
    "pgtrickle.refresh.waves.apply_with_others": "apply",
    "pgtrickle.refresh.waves.commit_refreshes": "record",
    "psycopg.Connection.commit": "commit",
}


def milliseconds(action: Callable[[], object]) -> float:
    """How long the action takes."""
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


@contextmanager
def phased() -> Iterator[Phases]:
    """Milliseconds of each step of the refresh that runs inside, and what none of them explains."""
    spent: Phases = defaultdict(float)
    running: list[str] = []

    def watched(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*args: Any, **kwargs: Any) -> Any:
            if running:
                return function(*args, **kwargs)
            running.append(step)
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[step] += (time.perf_counter() - started) * 1000
                running.pop()

        return watch

    found = ((target, step, _found(target)) for target, step in _STEPS.items())
    patches = [patch(target, new=watched(step, function)) for target, step, function in found if function]
    for step in patches:
        step.start()
    started = time.perf_counter()
    try:
        yield spent
    finally:
        total = (time.perf_counter() - started) * 1000
        for step in patches:
            step.stop()
        spent["between"] = total - sum(spent.values())


def typical(rounds: list[Phases]) -> Phases:
    """The median of each step over the rounds, in the order in which a refresh takes them."""
    names = [*dict.fromkeys(_STEPS.values()), "between"]
    return {name: round(median(phases.get(name, 0.0) for phases in rounds), 2) for name in names}


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that so many percent of them do not exceed."""
    ranked = sorted(samples)
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]


def _found(target: str) -> Callable[..., Any] | None:
    """The function of that name; a step that is taken otherwise by now goes to what lies between."""
    try:
        return resolve_name(target)  # type: ignore[no-any-return]
    except (AttributeError, ImportError):
        return None
