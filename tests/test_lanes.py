"""A lane runs what belongs to it, fails where a test starts more than it may, and fails if one part fails."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests import lanes
from tests.fixtures.lanes import Lane
from tests.lanes import Part, Result, counts_of, main, summary

PLUGINS = [f"-ptests.fixtures.{name}" for name in ("lanes", "servers", "spark")]
CONFIGURATION = """
[pytest]
markers =
    spark
    database
    own_server
    slow
    thorough
"""


@pytest.fixture
def arguments(tmp_path: Path):
    """What pytest is given to run a test file with the lanes and nothing else of ours."""
    configuration = tmp_path / "pytest.ini"
    configuration.write_text(CONFIGURATION)

    def write(text: str, name: str = "test_it.py") -> tuple[str, ...]:
        (tmp_path / name).write_text(text)
        return (*PLUGINS, "-pno:cacheprovider", f"-c{configuration}", str(tmp_path / name))

    return write


def run(*arguments: str) -> tuple[Counter[str], str]:
    command = [sys.executable, "-m", "pytest", *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return counts_of(said), said


def test_the_fast_lane_leaves_out_what_needs_spark_or_a_server_of_its_own(arguments):
    given = arguments("""
import pytest
def test_plain(): pass
def test_with_spark(spark): pass
def test_with_a_server(own_server): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.thorough
def test_thorough(): pass
@pytest.mark.parametrize("pg_version", [18, 15], indirect=True)
def test_of_a_version(pg_version): assert pg_version == 18
""")
    assert run("--lane=fast", "--pg=18", *given)[0] == {"passed": 2, "deselected": 5}


def test_spark_that_is_not_marked_fails_in_the_fast_lane(arguments):
    counts, said = run(
        "--lane=fast",
        *arguments("""
import subprocess, sys
START = "from pgtrickle.pipeline.session import open_spark; open_spark()"
def test_here(): exec(START)
def test_in_a_process(): subprocess.run([sys.executable, "-c", START], check=True)
def test_by_the_fixture(request): request.getfixturevalue("spark")
"""),
    )
    assert counts == {"failed": 3}
    assert said.count("JavaMissing: ") >= 3
    assert "no-spark-in-the-fast-lane/mark-this-test-with-spark" in said


def test_a_server_that_is_not_marked_fails_in_the_fast_lane(arguments):
    counts, said = run(
        "--lane=fast",
        *arguments("""
from tests.fixtures.servers import new_server
def test_another_server():
    with new_server(18): pass
"""),
    )
    assert counts == {"failed": 1}
    assert "the fast lane has one server: mark this test with own_server" in said


def test_a_lane_fails_if_one_of_its_parts_fails(arguments, monkeypatch, capsys):
    good = Part("good", arguments("def test_it(): pass", "test_good.py"))
    bad = Part("bad", arguments("def test_it(): assert False", "test_bad.py"))
    monkeypatch.setattr(lanes, "LANES", {Lane.FAST: (bad, good)})
    assert main(Lane.FAST) == 1
    *_, first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("bad: failed in ")
    assert second.startswith("good: passed in ")
    assert " 1 failed, 1 passed in " in last


DIRECTORIES = sorted({str(path.parent) for path in Path("tests").rglob("test_*.py")})


def selects(part: Part, directory: str, marks: frozenset[str]) -> bool:
    """Whether a part runs tests of a directory that have these marks."""
    *paths, option, expression = part.arguments
    assert option == "-m"
    ignored = [path.removeprefix("--ignore=") for path in paths if path.startswith("--ignore=")]
    given = [path for path in paths if not path.startswith("--ignore=")] or ["tests"]
    parents = {directory, *map(str, Path(directory).parents)}
    is_inside = not parents.isdisjoint(given) and parents.isdisjoint(ignored)

    def has_mark(name: str, /, **_: object) -> bool:
        return name in marks

    return is_inside and Expression.compile(expression).evaluate(has_mark)


@pytest.mark.parametrize("lane", [Lane.FAST, Lane.TEST])
@pytest.mark.parametrize("directory", DIRECTORIES)
def test_the_parts_of_a_lane_run_every_test_once(lane, directory):
    # what is run in another way too comes on top
    parts = [
        part for part in lanes.LANES[lane] if not {"--through", "--compatible", "--cdc"} & {*part.arguments}
    ]
    kinds = [frozenset(), frozenset({"database"})]
    if lane is Lane.TEST:
        kinds += [kind | {"spark"} for kind in kinds]
    for marks in kinds:
        running = [part.name for part in parts if selects(part, directory, marks)]
        assert len(running) == 1, (marks, running)


def test_a_part_that_broke_off_counts_as_an_error():
    broken = Result(Part("broken", ()), 4, counts_of("ERROR: usage: pytest"))
    whole = Result(Part("whole", ()), 0, counts_of("===== 3 passed, 1 skipped in 2.00s (0:00:02) ====="))
    assert " 1 errors, 3 passed, 1 skipped in 5.00s " in summary([broken, whole], 5.0)
