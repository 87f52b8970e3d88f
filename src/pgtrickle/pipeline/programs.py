"""Runs small programs: a refresh puts its rows into a cached plan and computes it in the driver.

Analysing, optimizing and planning a program takes Spark ten times as long as computing a small window. If
several threads need the same program at once, it is planned several times. A program whose plan cannot be
used again runs as a job each time.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.pool import ThreadPool
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.changes.memory import PER_VALUE, TooMuch
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.jvm import GatewayError
from pgtrickle.pipeline.jvm.cached_plan import CachedPlan, plan_in_driver
from pgtrickle.pipeline.jvm.driver_execution import (
    MAX_THREADS,
    DriverExecution,
    PlanFailed,
    PlanRun,
    Unavailable,
)
from pgtrickle.pipeline.jvm.failures import text_of
from pgtrickle.pipeline.plan_cache import PlanCache, PlanKey, plan_key
from pgtrickle.pipeline.small import UNBOUNDED, plan_small
from pgtrickle.pipeline.tags import tagged_jobs

_MOST_ROWS: Final = 2**31 - 2
"""Spark's LIMIT counts no further."""
_LOG: Final = logging.getLogger("pgtrickle.pipeline")

Request = tuple[str, Mapping[str, pa.Table]]
"""The text of a program, and its inputs by name."""
Result: TypeAlias = pa.Table | PySparkException | SparkFailed | TooMuch


@dataclass(slots=True)
class _Attempt:
    """A program and what became of it: run in the driver if it has a plan, else as a job."""

    request: Request
    most: int
    key: PlanKey | None = None
    """None if it always runs as a job."""
    plan: CachedPlan | None = None
    run: PlanRun | None = None
    failure: Exception | None = None
    result: Result | None = None

    @property
    def needs_plan(self) -> bool:
        """Whether it could be run in the driver if it had a plan."""
        return self.key is not None and self.plan is None


@dataclass(frozen=True, slots=True)
class Counters:
    """How many programs ran in the driver and how many as jobs, since the session opened."""

    in_driver: int
    as_jobs: int


class Programs:
    """The programs of a session that have been planned. Safe to use from many threads."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._in_driver = self._as_jobs = 0
        self._execution, self.why_jobs = _probe(session)
        """`why_jobs` says why every program runs as a job; None if small ones are computed in the driver."""
        self._plans = PlanCache.for_heap(0 if self._execution is None else self._execution.heap_bytes)

    @property
    def heap_bytes(self) -> int | None:
        """The heap of the driver's JVM; None where the driver is remote."""
        return None if self._execution is None else self._execution.heap_bytes

    @property
    def counters(self) -> Counters:
        """How programs ran so far."""
        with self._lock:
            return Counters(self._in_driver, self._as_jobs)

    def run(
        self,
        spark_sql: str,
        inputs: Mapping[str, pa.Table],
        most: int = UNBOUNDED,
        *,
        keeps: bool = True,
    ) -> pa.Table:
        """The rows of a program; raise TooMuch past `most` bytes.

        Without `keeps` the plan is not cached, for a program that will not run again soon.
        """
        (result,) = self._results([(spark_sql, inputs)], most, keeps=keeps)
        if isinstance(result, Exception):
            raise result
        return result

    def run_all(self, requests: Sequence[Request], most: int = UNBOUNDED) -> list[Result]:
        """The rows of each program, at most `most` bytes of each, or the error it failed with."""
        return self._results(requests, most, keeps=True)

    def close(self) -> None:
        """Drop all plans and let the threads end. Makes no call into the JVM, which may be dead."""
        self.clear()
        if "_threads" in self.__dict__:
            self._threads.close()

    def interrupt(self, tag: str | None = None) -> None:
        """Cancel what runs in the driver, under a tag or all of it, as far as Spark's operators allow."""
        if self._execution is not None:
            self._execution.interrupt(tag)

    def _results(self, requests: Sequence[Request], most: int, *, keeps: bool) -> list[Result]:
        """Run what has a plan in one call to the JVM, and everything else as jobs."""
        attempts = [self._find_plan(request, most) for request in requests]
        self._each(self._make_plan, [attempt for attempt in attempts if attempt.needs_plan])
        self._compute([attempt for attempt in attempts if attempt.run is not None])
        self._each(self._run_as_job, [attempt for attempt in attempts if attempt.result is None])
        for attempt in attempts:
            if keeps and attempt.key is not None and attempt.plan is not None:
                self._plans.give_back(attempt.key, attempt.plan)
        return [attempt.result for attempt in attempts if attempt.result is not None]

    def _find_plan(self, request: Request, most: int) -> _Attempt:
        """An attempt with a plan from the cache, if there is one that nobody uses."""
        attempt = _Attempt(request, most)
        key = None if self._execution is None else plan_key(*request)
        if key is None or not self._plans.is_cacheable(key):
            return attempt
        attempt.key = key
        attempt.plan = self._plans.take(key)
        if attempt.plan is not None:
            attempt.run = attempt.plan.run_with(request[1], most)
        return attempt

    def _make_plan(self, attempt: _Attempt) -> None:
        assert self._execution is not None
        try:
            attempt.plan = plan_in_driver(self._session, self._execution, *attempt.request)
        except (Unavailable, PySparkException, GatewayError) as failure:
            attempt.failure = failure
        else:
            # it is planned with the rows in it
            attempt.run = attempt.plan.first_run(attempt.most)

    def _compute(self, attempts: Sequence[_Attempt]) -> None:
        """Run plans that no other thread has; a plan that did not come to its end is given up."""
        if not attempts or self._execution is None:
            return
        try:
            outcomes = self._execution.run([attempt.run for attempt in attempts if attempt.run is not None])
        except (PySparkException, GatewayError) as failure:
            outcomes = [PlanFailed(text_of(failure))] * len(attempts)
        for attempt, outcome in zip(attempts, outcomes, strict=True):
            if isinstance(outcome, PlanFailed):
                attempt.failure = outcome
            else:
                attempt.result = outcome
            if not isinstance(outcome, pa.Table):
                attempt.plan = None
        with self._lock:
            self._in_driver += sum(isinstance(outcome, pa.Table) for outcome in outcomes)

    def _run_as_job(self, attempt: _Attempt) -> None:
        # If the rows or the program caused the failure, running it as a job reproduces the error.
        # Otherwise the plan was at fault.
        attempt.result = self._job(*attempt.request, attempt.most)
        if attempt.key is not None and attempt.failure and not isinstance(attempt.result, Exception):
            self._note_fallback(attempt.key, attempt.failure)

    def _each(self, action: Callable[[_Attempt], None], attempts: Sequence[_Attempt]) -> None:
        """Act on several attempts at once; each thread works under the tag of the caller."""
        if len(attempts) <= 1:
            for attempt in attempts:
                action(attempt)
            return
        self._threads.starmap(Context.run, [(copy_context(), action, attempt) for attempt in attempts], 1)

    def _job(self, spark_sql: str, inputs: Mapping[str, pa.Table], most: int) -> Result:
        with self._lock:
            self._as_jobs += 1
        try:
            return self._run_job(spark_sql, inputs, most)
        except (PySparkException, SparkFailed, TooMuch) as failure:
            return failure

    def _run_job(self, spark_sql: str, inputs: Mapping[str, pa.Table], most: int) -> pa.Table:
        """Run the program as a job, which ends once it has more rows than fit into `most` bytes."""
        frame = plan_small(self._session, spark_sql, inputs)
        fitting = min(_MOST_ROWS, most // max_width(len(frame.columns), inputs))
        with tagged_jobs(self._session):
            found = frame.limit(fitting + 1).toArrow()
        if found.num_rows > fitting:
            raise TooMuch(f"a result of more than {fitting:,} rows")
        return found

    def _note_fallback(self, key: PlanKey, failure: Exception) -> None:
        """Run this program as a job from now on; log the reason for the first such program."""
        if self._plans.note_uncacheable(key):
            _LOG.warning(
                "A small program runs as a Spark job, which takes longer than in the driver: %s",
                text_of(failure).strip(),
            )

    @cached_property
    def _threads(self) -> ThreadPool:
        # daemon threads: they do not keep the process alive
        return ThreadPool(min(MAX_THREADS, os.cpu_count() or 1))

    def __len__(self) -> int:
        return len(self._plans)

    def clear(self) -> None:
        """Drop all plans."""
        self._plans.clear()


def _probe(session: SparkSession) -> tuple[DriverExecution | None, str | None]:
    """Try to compute a program in the driver, once; if that fails, say why."""
    trial = {"t": pa.table({"v": pa.array([1, 2], pa.int64())})}
    try:
        execution = DriverExecution.of(session)
        plan = plan_in_driver(session, execution, "select sum(v) as total from t", trial)
        totals = []
        for rows in (trial, {"t": pa.table({"v": pa.array([5], pa.int64())})}):
            (outcome,) = execution.run([plan.run_with(rows, UNBOUNDED)])
            if isinstance(outcome, Exception):
                raise outcome
            totals.append(outcome.column("total").to_pylist())
    except (Unavailable, GatewayError, PySparkException, SparkFailed, PlanFailed) as failure:
        return None, text_of(failure).strip()
    if totals != [[3], [5]]:
        return None, f"a trial on Spark {session.version} gave {totals} instead of [[3], [5]]"
    return execution, None


def max_width(columns: int, inputs: Mapping[str, pa.Table]) -> int:
    """How many bytes a row of the result may have: no value occurs twice or is longer than in the inputs."""
    longest = max((_longest(column) for rows in inputs.values() for column in rows.columns), default=0)
    return columns * (PER_VALUE + longest)


def _longest(column: pa.ChunkedArray) -> int:
    if not pa.types.is_string(column.type):
        return PER_VALUE
    return int(pc.max(pc.binary_length(column)).as_py() or 0)
