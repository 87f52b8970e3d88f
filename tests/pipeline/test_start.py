"""Spark starts in the background: until it is ready, callers are told so, and a failure is kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pgtrickle.model.errors import JavaMissing, SparkLost
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.supply import SparkSupply
from tests.fixtures.waiting import eventually


def test_callers_are_told_that_spark_is_starting_and_those_who_wait_get_it(spark):
    may_start = threading.Event()

    def start() -> Any:
        assert may_start.wait(90)
        return spark

    supply = SparkSupply(start)
    supply.begin()
    supply.begin()
    with pytest.raises(SparkLost, match="Spark is starting"):
        supply.get()
    assert supply.why_waiting == "it is starting"
    may_start.set()
    assert supply.wait(60) is spark
    assert supply.failed_start is None
    supply.replace(None)
    supply.close()


def test_a_start_that_fails_is_kept_with_its_reason():
    def start() -> Spark:
        raise JavaMissing("there is no Java")

    supply = SparkSupply(start)
    supply.begin()
    eventually(lambda: isinstance(supply.failed_start, JavaMissing))
    assert supply.why_waiting == "it cannot be started (there is no Java)"
    supply.close()
