"""Programs whose plans are kept: a refresh puts its rows into the plan and runs it again.

To analyse, optimize and plan a program takes Spark ten times as long as to compute a small window.
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

    can_be_kept: bool = True
    idle: list[KeptPlan] = field(default_factory=list)


_UNKNOWN: Final = _Known()


class Programs:
    """The programs of a session that have been planned."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # a remote session shows nothing of its plans
        self._place = Place.of(session) if hasattr(session, "_jsparkSession") else None
        self._known: dict[_Key, _Known] = {}
        self._lock = threading.Lock()

    def run(self, spark_sql: str, inputs: Mapping[str, pa.Table], *, keeps: bool = True) -> pa.Table:
        """The rows of a program over the inputs; its plan is not kept if it will not run again soon."""
        result = self._result(spark_sql, inputs, keeps)
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

    def _result(self, spark_sql: str, inputs: Mapping[str, pa.Table], keeps: bool = True) -> Result:
        key = self._key(spark_sql, inputs)
        if key is None or not self._known.get(key, _UNKNOWN).can_be_kept:
            return _attempt(self._anew, spark_sql, inputs)
        try:
            found = self._in_place(key, spark_sql, inputs)
        except SparkFailed as interrupted:
            return interrupted
        except (PySparkException, Py4JError):
            # the plan may be left in any state
            found = None
        if found is None:
            # if it is for the rows or the program, a job tells what is the matter; else it was for the plan
            result = _attempt(self._anew, spark_sql, inputs)
            if not isinstance(result, Exception):
                self._known[key] = _Known(can_be_kept=False)
            return result
        plan, rows = found
        if keeps:
            self._given_back(key, plan)
        return rows

    def _in_place(
        self, key: _Key, spark_sql: str, inputs: Mapping[str, pa.Table]
    ) -> tuple[KeptPlan, pa.Table] | None:
        """Run the program from a plan that nobody else has, which the caller may give back afterwards."""
        assert self._place is not None
        with self._lock:
            known = self._known.get(key)
            plan = known.idle.pop() if known and known.idle else None
        if plan is not None:
            plan.put(self._place, inputs)
        else:
            # it is planned with the rows in it
            plan = kept_plan(self._session, spark_sql, inputs)
        return None if plan is None else (plan, plan.run(self._place))

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

    def _given_back(self, key: _Key, plan: KeptPlan) -> None:
        with self._lock:
            self._known.setdefault(key, _Known()).idle.append(plan)
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
