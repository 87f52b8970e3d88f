"""A kept plan computes in the thread that asks, as exactly as a job, and leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.in_place import Place
from pgtrickle.pipeline.prepared import Programs
from tests.fixtures.waiting import eventually
from tests.pipeline.relations import rows_of


@pytest.fixture
def programs(spark) -> Programs:
    """Programs that nobody has run."""
    return Programs(spark.small)


@pytest.fixture
def place(programs) -> Iterator[Place]:
    """The place of the programs, which has nothing left at the end."""
    place = programs._place
    assert place is not None
    yield place
    assert place._running == {}
    assert place.memory_manager.executionMemoryUsed() == 0
    assert place.contexts.get() is None


def numbers(*values: int) -> dict[str, pa.Table]:
    return {"t": pa.table({"v": pa.array(values, pa.int64())})}


def jobs(spark) -> int:
    return int(spark.small.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def test_there_is_no_job(spark, programs, place):
    total = "select sum(v) as v, count(*) as n from t"
    before = jobs(spark)
    for size in (3, 1, 0, 4):
        expected = sum(range(size)) if size else None
        assert rows_of(programs.run(total, numbers(*range(size)))) == [(expected, size)]
    assert jobs(spark) == before


def test_a_plan_that_runs_once_is_not_kept(programs, place):
    total = "select sum(v) as v from t"
    assert rows_of(programs.run(total, numbers(1, 2), keeps=False)) == [(3,)]
    assert programs._known == {}
    assert rows_of(programs.run(total, numbers(1, 3))) == [(4,)]
    assert len(programs) == 1


def test_a_program_that_spark_refuses_is_told_and_leaves_the_others_alone(programs, place):
    failed, fine = programs.run_all([("select nothing from t", numbers(1)), ("select v from t", numbers(1))])
    assert "nothing" in str(failed)
    assert rows_of(fine) == [(1,)]


def test_rows_that_do_not_fit_into_one_message_arrive_whole(programs, place):
    squares = "select v, v * v as w, repeat('x', 20) as x from t"
    for size in (3, 3, 5000, 1, 20000, 0, 300):
        rows = programs.run(squares, numbers(*range(size)))
        assert rows_of(rows) == sorted(((n, n * n, "x" * 20) for n in range(size)), key=repr)


def test_a_program_fails_with_its_own_error_and_goes_on_with_other_rows(programs, place):
    total = "select sum(v) as v from t"
    for _ in range(3):
        assert rows_of(programs.run(total, numbers(1, 2))) == [(3,)]
    for _ in range(2):
        with pytest.raises(Exception, match="overflow"):
            programs.run(total, numbers(2**62, 2**62))
        assert rows_of(programs.run(total, numbers(1, 2))) == [(3,)]


def test_only_the_program_to_blame_fails(programs, place):
    total, most = "select sum(v) as v from t", "select max(v) as v from t"
    for _ in range(3):
        programs.run_all([(total, numbers(1)), (most, numbers(1))])
    failed, fine = programs.run_all([(total, numbers(2**62, 2**62)), (most, numbers(2**62, 2**62))])
    assert isinstance(failed, Exception)
    assert rows_of(fine) == [(2**62,)]


def test_a_program_that_only_a_job_computes_is_not_kept(spark, programs, place, monkeypatch):
    total = "select sum(v) as v from t"

    def refuse(*given: object) -> list[bytes]:
        raise Py4JError("not here")

    with monkeypatch.context() as patched:
        patched.setattr(Place, "compute", refuse)
        assert rows_of(programs.run(total, numbers(2))) == [(2,)]
    before = jobs(spark)
    assert rows_of(programs.run(total, numbers(3))) == [(3,)]
    assert jobs(spark) > before
    assert len(programs) == 0


def test_of_more_programs_than_there_is_room_for_some_run_from_kept_plans(programs, planned, monkeypatch):
    monkeypatch.setattr(Programs, "_most", 5)
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
    before = jobs(spark)
    for number in (1, 2):
        assert rows_of(programs.run("select v from t", numbers(number))) == [(number,)]
    assert jobs(spark) == before + 2


def test_many_threads_each_compute_their_own_rows(programs, place):
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


def test_an_interrupted_program_ends_long_before_it_is_done(programs, place):
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
    eventually(lambda: place._running)
    eventually(lambda: place.interrupt() or not thread.is_alive(), seconds=30)
    thread.join()
    assert isinstance(results[0], SparkFailed)
    assert "cancelled" in str(results[0])
