"""A failure of Spark carries its cause, so that nobody has to read its text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pgtrickle.model.errors import SparkCause, SparkFailed
from pgtrickle.pipeline.jvm.failures import spark_failure
from pgtrickle.pipeline.small import run_small
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW
from pgtrickle.refresh.faults import Unfollowable, unfollowable_values

NUMBERS = pa.table({"v": pa.array([2**62, 2**62], pa.int64())})
PROGRAMS = {
    "select sum(v) as v from t": (SparkCause.VALUE_TOO_LARGE, "ARITHMETIC_OVERFLOW"),
    "select cast(v as decimal(38,0)) * 10000000000000000000 * 10000000000000000000 as v from t": (
        SparkCause.VALUE_TOO_LARGE,
        "NUMERIC_VALUE_OUT_OF_RANGE",
    ),
    f"select if(v > 0, raise_error('{MORE_THAN_ONE_ROW}'), v) as v from t": (
        SparkCause.MORE_THAN_ONE_ROW,
        MORE_THAN_ONE_ROW,
    ),
    "select v / (v - v) as v from t": (None, None),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_failed_program_carries_its_cause(spark, program):
    with pytest.raises(SparkFailed) as raised:
        run_small(spark, program, {"t": NUMBERS})
    assert (raised.value.cause, raised.value.condition) == PROGRAMS[program]


WORKER = """
An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "reading.py", line 1, in read
pyarrow.lib.ArrowInvalid: a value
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (WORKER, SparkCause.VALUE_TOO_LARGE),
        ("java.lang.OutOfMemoryError: Java heap space", SparkCause.OUT_OF_MEMORY),
        ("anything else", None),
    ],
)
def test_the_exception_of_a_worker_or_the_jvm_is_known_by_its_name(text, cause):
    assert spark_failure(RuntimeError(text)).cause is cause


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (SparkCause.MORE_THAN_ONE_ROW, MORE_THAN_ONE_ROW),
        (SparkCause.VALUE_TOO_LARGE, r"a value is too large for Spark \(ARITHMETIC_OVERFLOW\)"),
        (SparkCause.OUT_OF_MEMORY, "Spark had too little memory for it"),
    ],
)
def test_what_only_postgresql_can_compute_is_told_by_the_cause(cause, reason):
    with pytest.raises(Unfollowable, match=reason), unfollowable_values():
        raise SparkFailed("whatever it says", cause=cause, condition="ARITHMETIC_OVERFLOW")


def test_a_failure_for_another_reason_stays_what_it_is():
    with pytest.raises(SparkFailed), unfollowable_values():
        raise SparkFailed("ARITHMETIC_OVERFLOW is only its text")
