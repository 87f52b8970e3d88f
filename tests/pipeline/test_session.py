"""Spark is started with care, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from pgtrickle.model.errors import JavaMissing
from pgtrickle.pipeline.java import require_java
from pgtrickle.pipeline.session import adopt

WAITS_FOR_AN_INTERRUPT = """
import signal
from pgtrickle.pipeline.session import open_spark
with open_spark("local[1]") as spark:
    one = spark.small.sql("select 1 as one").collect()[0].one
    try:
        print(one, flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print(spark.small.sql("select 2 as two").collect()[0].two, flush=True)
"""


def test_no_java_is_said_before_spark_starts(tmp_path):
    with pytest.raises(JavaMissing, match="none on the PATH"):
        require_java({"PATH": str(tmp_path)})


def test_a_wrong_java_home_is_said(tmp_path):
    with pytest.raises(JavaMissing, match="JAVA_HOME"):
        require_java({"JAVA_HOME": str(tmp_path)})


def test_an_old_java_is_refused(tmp_path):
    old = tmp_path / "java"
    old.write_text("""#!/bin/sh\necho 'openjdk version "11.0.2" 2019-01-15' >&2\n""")
    old.chmod(0o755)
    with pytest.raises(JavaMissing, match="is 11"):
        require_java({"PATH": str(tmp_path)})


def test_a_session_that_was_given_outlives_us(spark):
    adopt(spark.small).close()
    assert spark.small.sql("select 1 as one").collect()[0].one == 1


def test_the_two_sessions_plan_differently(spark):
    assert spark.small.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.large.conf.get("spark.sql.adaptive.enabled") == "true"
    assert spark.large.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.slow
@pytest.mark.spark
def test_an_interrupt_reaches_us_first_and_nothing_is_left(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS_FOR_AN_INTERRUPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        os.killpg(process.pid, signal.SIGINT)
        # the pipes end when the last process that holds them has ended, the JVM too
        rest, errors = process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert rest == "2\n"
    assert process.returncode == 0
    assert [line for line in errors.splitlines() if "incubator modules" not in line] == []
    assert list(tmp_path.iterdir()) == []
