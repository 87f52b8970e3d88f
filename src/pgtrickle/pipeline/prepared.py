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
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.pool import ThreadPool
from typing import Final, ParamSpec, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.changes.memory import PER_VALUE, TooMuch
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.in_place import Place
from pgtrickle.pipeline.kept_plan import KeptPlan, kept_plan
from pgtrickle.pipeline.small import UNBOUNDED, plan_small
from pgtrickle.pipeline.tags import tagged_jobs

HEAP_FOR_EACH: Final = 4 << 20
"""One plan is kept for so many bytes of the JVM's heap; it takes a half to one million of them."""
MAX_HANDS: Final = 4
"""So many programs of a wave are computed at once, if the machine has as many cores."""
_MAX_BYTES: Final = 4 << 20
"""Larger inputs are not kept in memory for the sake of a plan."""

_MOST_ROWS: Final = 2**31 - 2
"""Spark counts no further in a LIMIT."""

Asked = tuple[str, Mapping[str, pa.Table]]
"""The text of a program, and what it reads by name."""
Result: TypeAlias = pa.Table | PySparkException | SparkFailed | TooMuch
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

    @property
    def heap_bytes(self) -> int | None:
        """The heap of the driver's JVM; None where it is remote."""
        return None if self._place is None else self._place.heap_bytes

    def run(
        self,
        spark_sql: str,
        inputs: Mapping[str, pa.Table],
        most: int = UNBOUNDED,
        *,
        keeps: bool = True,
    ) -> pa.Table:
        """The rows of a program over the inputs; its plan is not kept if it will not run again soon.

        A result with more bytes than `most` raises.
        """
        result = self._result(spark_sql, inputs, most, keeps)
        if isinstance(result, Exception):
            raise result
        return result

    def run_all(self, asked: Sequence[Asked], most: int = UNBOUNDED) -> list[Result]:
        """The rows of each program, or what it failed with; `most` bytes of each."""
        if len(asked) == 1:
            return [self._result(*asked[0], most)]
        # each thread computes under the tag of the one that asked
        given = [(copy_context(), *one, most) for one in asked]
        return self._hands.starmap(self._result_in, given, chunksize=1)

    def close(self) -> None:
        """Forget all plans, and let the threads end."""
        self.clear()
        if "_hands" in self.__dict__:
            self._hands.close()

    def interrupt(self, tag: str | None = None) -> None:
        """End what runs in a kept plan, under a tag or at all, as far as Spark lets us."""
        if self._place is not None:
            self._place.interrupt(tag)

    def _result_in(
        self, context: Context, spark_sql: str, inputs: Mapping[str, pa.Table], most: int
    ) -> Result:
        return context.run(self._result, spark_sql, inputs, most)

    def _result(
        self, spark_sql: str, inputs: Mapping[str, pa.Table], most: int, keeps: bool = True
    ) -> Result:
        key = self._key(spark_sql, inputs)
        if key is None or not self._known.get(key, _UNKNOWN).can_be_kept:
            return _attempt(self._anew, spark_sql, inputs, most)
        try:
            found = self._in_place(key, spark_sql, inputs, most)
        except (SparkFailed, TooMuch) as ended:
            return ended
        except (PySparkException, Py4JError):
            # the plan may be left in any state
            found = None
        if found is None:
            # if it is for the rows or the program, a job tells what is the matter; else it was for the plan
            result = _attempt(self._anew, spark_sql, inputs, most)
            if not isinstance(result, Exception):
                self._known[key] = _Known(can_be_kept=False)
            return result
        plan, rows = found
        if keeps:
            self._given_back(key, plan)
        return rows

    def _in_place(
        self, key: _Key, spark_sql: str, inputs: Mapping[str, pa.Table], most: int
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
        return None if plan is None else (plan, plan.run(self._place, most))

    def _anew(self, spark_sql: str, inputs: Mapping[str, pa.Table], most: int) -> pa.Table:
        """Run the program as a job, which ends once it has more rows than fit into `most` bytes."""
        frame = plan_small(self._session, spark_sql, inputs)
        fitting = min(_MOST_ROWS, most // max_width(len(frame.columns), inputs))
        with tagged_jobs(self._session):
            found = frame.limit(fitting + 1).toArrow()
        if found.num_rows > fitting:
            raise TooMuch(f"a result of more than {fitting:,} rows")
        return found

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


def max_width(columns: int, inputs: Mapping[str, pa.Table]) -> int:
    """How many bytes a row of the result may have: it holds no value twice, and none that is longer."""
    longest = max((_longest(column) for rows in inputs.values() for column in rows.columns), default=0)
    return columns * (PER_VALUE + longest)


def _longest(column: pa.ChunkedArray) -> int:
    if not pa.types.is_string(column.type):
        return PER_VALUE
    return int(pc.max(pc.binary_length(column)).as_py() or 0)


def _attempt(compute: Callable[P, pa.Table], *given: P.args, **named: P.kwargs) -> Result:
    try:
        return compute(*given, **named)
    except (PySparkException, SparkFailed, TooMuch) as failure:
        return failure
