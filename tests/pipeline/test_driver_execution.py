"""A cached plan computes in the calling thread, as exactly as a job, and leaves nothing behind."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import pgtrickle
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.jvm import GatewayError
from pgtrickle.pipeline.jvm.driver_execution import DriverExecution, Outcome, PlanRun
from pgtrickle.pipeline.programs import Counters, Programs
from tests.fixtures.waiting import eventually
from tests.pipeline.relations import rows_of


@pytest.fixture
def programs(spark) -> Programs:
    """Programs that nobody has run."""
    return Programs(spark.small)


@pytest.fixture
def execution(programs) -> Iterator[DriverExecution]:
    """What the programs run in; nothing is left in it at the end."""
    execution = programs._execution
    assert execution is not None
    yield execution
    assert execution.runner.running() == 0
    assert execution.runner.memoryUsed() == 0


def numbers(*values: int) -> dict[str, pa.Table]:
    return {"t": pa.table({"v": pa.array(values, pa.int64())})}


def jobs(spark) -> int:
    return int(spark.small.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def test_there_is_no_job(spark, programs, execution):
    total = "select sum(v) as v, count(*) as n from t"
    before = jobs(spark)
    for size in (3, 1, 0, 4):
        expected = sum(range(size)) if size else None
        assert rows_of(programs.run(total, numbers(*range(size)))) == [(expected, size)]
    assert jobs(spark) == before


def test_a_plan_that_runs_once_is_not_kept(programs, execution):
    total = "select sum(v) as v from t"
    assert rows_of(programs.run(total, numbers(1, 2), keeps=False)) == [(3,)]
    assert len(programs) == 0
    assert programs._plans._entries == {}
    assert rows_of(programs.run(total, numbers(1, 3))) == [(4,)]
    assert len(programs) == 1


def test_a_program_that_spark_refuses_is_told_and_leaves_the_others_alone(programs, execution):
    failed, fine = programs.run_all([("select nothing from t", numbers(1)), ("select v from t", numbers(1))])
    assert "nothing" in str(failed)
    assert rows_of(fine) == [(1,)]


def test_rows_that_do_not_fit_into_one_message_arrive_whole(programs, execution):
    squares = "select v, v * v as w, repeat('x', 20) as x from t"
    for size in (3, 3, 5000, 1, 20000, 0, 300):
        rows = programs.run(squares, numbers(*range(size)))
        assert rows_of(rows) == sorted(((n, n * n, "x" * 20) for n in range(size)), key=repr)


def test_a_program_fails_with_its_own_error_and_goes_on_with_other_rows(programs, execution):
    total = "select sum(v) as v from t"
    for _ in range(3):
        assert rows_of(programs.run(total, numbers(1, 2))) == [(3,)]
    for _ in range(2):
        with pytest.raises(Exception, match="overflow"):
            programs.run(total, numbers(2**62, 2**62))
        assert rows_of(programs.run(total, numbers(1, 2))) == [(3,)]


def test_only_the_program_to_blame_fails(programs, execution):
    total, most = "select sum(v) as v from t", "select max(v) as v from t"
    for _ in range(3):
        programs.run_all([(total, numbers(1)), (most, numbers(1))])
    failed, fine = programs.run_all([(total, numbers(2**62, 2**62)), (most, numbers(2**62, 2**62))])
    assert isinstance(failed, Exception)
    assert rows_of(fine) == [(2**62,)]


def test_a_program_that_only_a_job_computes_is_not_cached_and_its_reason_is_logged_once(
    spark, programs, execution, monkeypatch, caplog
):
    total = "select sum(v) as v from t"

    def refuse(*given: object) -> list[bytes]:
        raise GatewayError("not here")

    counters = programs.counters
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "pgtrickle.pipeline"):
        patched.setattr(DriverExecution, "run", refuse)
        assert rows_of(programs.run(total, numbers(2))) == [(2,)]
        assert rows_of(programs.run(f"{total} where v > 0", numbers(2))) == [(2,)]
    assert [record.args for record in caplog.records] == [("not here",)]
    assert programs.counters == Counters(counters.in_driver, counters.as_jobs + 2)
    before = jobs(spark)
    assert rows_of(programs.run(total, numbers(3))) == [(3,)]
    assert jobs(spark) > before
    assert len(programs) == 0


def test_of_more_programs_than_there_is_room_for_some_run_from_kept_plans(programs, planned, monkeypatch):
    monkeypatch.setattr(programs._plans, "most", 5)
    taking_turns = [f"select sum(v) + {n} as v from t" for n in range(8)]
    for turn in range(6):
        found = [rows_of(programs.run(program, numbers(turn))) for program in taking_turns]
        assert found == [[(turn + n,)] for n in range(8)]
        assert len(programs) <= 5
    assert len(planned) < 6 * 8


def test_where_threads_have_no_thread_in_the_jvm_every_run_is_a_job(spark, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(type(spark.small.sparkContext), "_gateway", object())
        programs = Programs(spark.small)
    assert programs.why_jobs == "PySpark's gateway does not give each Python thread a thread in the JVM"
    before = jobs(spark)
    for number in (1, 2):
        assert rows_of(programs.run("select v from t", numbers(number))) == [(number,)]
    assert jobs(spark) == before + 2


def test_many_threads_each_compute_their_own_rows(programs, execution):
    joined = (
        "select a.v % 7 as k, count(*) as n, sum(b.v) as s from t a left join t b on a.v = b.v + 1 group by 1"
    )

    def expected(size: int) -> list[tuple[object, ...]]:
        found: dict[int, tuple[int, int | None]] = {}
        for v in range(size):
            n, s = found.get(v % 7, (0, None))
            found[v % 7] = (n + 1, s if v == 0 else (s or 0) + v - 1)
        return sorted(((k, *value) for k, value in found.items()), key=repr)

    with ThreadPoolExecutor(8) as threads:
        sizes = [n % 23 for n in range(120)]
        found = list(threads.map(lambda n: rows_of(programs.run(joined, numbers(*range(n)))), sizes))
    assert found == [expected(size) for size in sizes]


def test_an_interrupted_program_ends_long_before_it_is_done(programs, execution):
    # every row meets every other: a hundred million pairs
    slow = "select count(*) as n from t a left join t b on a.v % 1 = b.v % 1"
    for _ in range(2):
        programs.run(slow, numbers(1))
    results: list[object] = []

    def run() -> None:
        try:
            results.append(programs.run(slow, numbers(*range(10_000))))
        except SparkFailed as failure:
            results.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: execution.runner.running())
    eventually(lambda: execution.interrupt() or not thread.is_alive())
    thread.join()
    assert isinstance(results[0], SparkFailed)
    assert "canceled" in str(results[0])


def test_a_session_is_tried_once_before_anything_is_computed_in_the_driver(programs):
    assert programs.why_jobs is None
    assert programs.counters == Counters(0, 0)


def test_other_internals_are_named_and_every_run_is_a_job(spark, monkeypatch):
    def refuse(*given: object) -> list[bytes]:
        raise GatewayError("no constructor with these arguments\nand a trace")

    monkeypatch.setattr(DriverExecution, "_start", refuse)
    programs = Programs(spark.small)
    version = spark.small.version
    assert programs.why_jobs == f"Spark {version} has other internals (no constructor with these arguments)"
    assert rows_of(programs.run("select v from t", numbers(7))) == [(7,)]
    assert programs.counters == Counters(0, 1)


def test_a_trial_with_another_answer_rules_the_driver_out(spark, monkeypatch):
    run = DriverExecution.run
    kept: list[list[Outcome]] = []

    def stale(self: DriverExecution, runs: Sequence[PlanRun]) -> list[Outcome]:
        kept.append(run(self, runs))
        return kept[0]

    monkeypatch.setattr(DriverExecution, "run", stale)
    why = Programs(spark.small).why_jobs
    assert why is not None
    assert "gave [[3], [3]] instead of [[3], [5]]" in why


def test_only_one_package_touches_what_pyspark_hides():
    """Private attributes of PySpark lead into the JVM; import-linter cannot see them."""
    hidden = re.compile(r"\._(?:jvm|jdf|jsc|jsparkSession|gateway|jsparkContext)\b")
    source = Path(pgtrickle.__file__).parent
    inside = source / "pipeline" / "jvm"
    touching = [
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if inside not in file.parents and hidden.search(file.read_text())
    ]
    assert touching == []
