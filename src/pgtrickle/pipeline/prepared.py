"""Programs whose plans are kept: a refresh puts its rows into the plan and runs it again.

To analyse, optimize and plan a program takes Spark several times as long as to compute a small window.
A plan serves one run at a time: who takes it has it alone, and where several need the same program at
once, it is planned several times. Where a plan has more to it than rows of ours, it is made anew always.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.pool import ThreadPool
from typing import Final, ParamSpec, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.in_place import Place
from pgtrickle.pipeline.kept_plan import KeptPlan, kept_plan
from pgtrickle.pipeline.small import plan_small

HEAP_FOR_EACH: Final = 4 << 20
"""One plan is kept for so many bytes of the JVM's heap; it takes a half to one million of them."""
MAX_HANDS: Final = 4
"""So many programs of a wave are computed at once, if the machine has as many cores."""
_MAX_BYTES: Final = 4 << 20
"""Larger inputs are not kept in memory for the sake of a plan."""

Asked = tuple[str, Mapping[str, pa.Table]]
"""The text of a program, and what it reads by name."""
Result: TypeAlias = pa.Table | PySparkException | SparkFailed
_Key = tuple[object, ...]
P = ParamSpec("P")


@dataclass(slots=True)
class _Known:
    """What is known of a program; `idle` are the plans of it that nobody uses at the moment."""

    has_run: bool = False
    can_be_kept: bool = True
    idle: list[KeptPlan] = field(default_factory=list)


class Programs:
    """The programs of a session that have been planned."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # a remote session shows nothing of its plans
        self._can_keep = hasattr(session, "_jsparkSession")
        self._known: dict[_Key, _Known] = {}
        self._lock = threading.Lock()

    def run(self, spark_sql: str, inputs: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a program over the inputs."""
        (result,) = self.run_all([(spark_sql, inputs)])
        if isinstance(result, Exception):
            raise result
        return result

    def run_all(self, asked: Sequence[Asked]) -> list[Result]:
        """The rows of each program, or what it failed with."""
        if len(asked) == 1:
            return [self._result(*asked[0])]
        return self._hands.starmap(self._result, asked, chunksize=1)

    def interrupt(self) -> None:
        """End what runs in a kept plan, as far as Spark lets us."""
        if self._place is not None:
            self._place.interrupt()

    def _result(self, spark_sql: str, inputs: Mapping[str, pa.Table]) -> Result:
        key = self._key(spark_sql, inputs)
        plan = None if key is None else self._taken(key, spark_sql, inputs)
        if key is None or plan is None or self._place is None:
            return _attempt(self._anew, spark_sql, inputs)
        try:
            plan.put(self._place, inputs)
            rows = plan.run(self._place)
        except SparkFailed as interrupted:
            return interrupted
        except (PySparkException, Py4JError):
            # the plan may be left in any state; a job tells what is the matter, if it is with the rows
            result = _attempt(self._anew, spark_sql, inputs)
            if not isinstance(result, Exception):
                self._give_up(key)
            return result
        self._given_back(key, plan)
        return rows

    def _anew(self, spark_sql: str, inputs: Mapping[str, pa.Table]) -> pa.Table:
        return plan_small(self._session, spark_sql, inputs).toArrow()

    @cached_property
    def _most(self) -> int:
        """How many plans are kept."""
        return 0 if self._place is None else max(1, self._place.heap_bytes // HEAP_FOR_EACH)

    @cached_property
    def _hands(self) -> ThreadPool:
        # its threads are no reason for a process to stay
        return ThreadPool(min(MAX_HANDS, os.cpu_count() or 1))

    @cached_property
    def _place(self) -> Place | None:
        return Place.of(self._session) if self._can_keep else None

    def _key(self, spark_sql: str, inputs: Mapping[str, pa.Table]) -> _Key | None:
        """What a plan is kept under; None if it is not worth it."""
        if self._place is None or not inputs or sum(rows.nbytes for rows in inputs.values()) > _MAX_BYTES:
            return None
        return (spark_sql, *((name, rows.schema) for name, rows in inputs.items()))

    def __len__(self) -> int:
        with self._lock:
            return sum(len(known.idle) for known in self._known.values())

    def clear(self) -> None:
        """Plan everything anew."""
        with self._lock:
            self._known.clear()

    def _taken(self, key: _Key, spark_sql: str, inputs: Mapping[str, pa.Table]) -> KeptPlan | None:
        """A plan for nobody but the caller; the first run of a program plans for just its rows."""
        with self._lock:
            known = self._known.setdefault(key, _Known())
            if known.idle:
                return known.idle.pop()
            if not known.has_run or not known.can_be_kept:
                known.has_run = True
                return None
        plan = kept_plan(self._session, spark_sql, inputs)
        if plan is None:
            known.can_be_kept = False
        return plan

    def _give_up(self, key: _Key) -> None:
        """Plan a program anew each time: it runs as a job, but not from a plan that is kept."""
        with self._lock:
            self._known[key] = _Known(has_run=True, can_be_kept=False)

    def _given_back(self, key: _Key, plan: KeptPlan) -> None:
        with self._lock:
            self._known.setdefault(key, _Known(has_run=True)).idle.append(plan)
            count = sum(max(1, len(known.idle)) for known in self._known.values())
            while count > self._most:
                # programs take turns: the one that ran longest ago is the one that runs next
                gone = self._known.pop(random.choice(list(self._known)))
                count -= max(1, len(gone.idle))


def _attempt(compute: Callable[P, pa.Table], *given: P.args, **named: P.kwargs) -> Result:
    try:
        return compute(*given, **named)
    except (PySparkException, SparkFailed) as failure:
        return failure
