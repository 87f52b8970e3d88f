"""Random DDL beside random writes leaves every stream table right, or with a reason why it is not.

`make fuzz ARGS=--ddl SECONDS=…` does the same for longer, with another seed each time.
"""

from __future__ import annotations

import pytest

from tests.fuzz.ddl.playing import Finding
from tests.fuzz.ddl.running import run, shrunk
from tests.fuzz.ddl.statements import APP, Step, drawn_batches


@pytest.mark.slow
@pytest.mark.fuzz
def test_random_ddl_leaves_every_stream_table_right_or_with_a_reason(server, templates, spark, fuzz_seconds):
    templates.ensure(server)
    found = run(server, spark, 1, seconds=fuzz_seconds, shrink_seconds=30, failures=1, tell=lambda _: None)
    assert not found, "\n".join(map(str, found))


def test_a_seed_makes_the_same_batches_again():
    assert drawn_batches(7) == drawn_batches(7)
    assert drawn_batches(7) != drawn_batches(8)


def test_a_failure_keeps_only_the_steps_that_it_needs():
    """Here everything fails that truncates a table."""

    def play(batches):
        guilty = any("truncate" in str(step) for batch in batches for step in batch)
        return Finding("it fails", tuple(batches)) if guilty else None

    step = Step(APP, ("truncate orders",))
    other = Step(APP, ("analyze orders",))
    small = shrunk(play, Finding("it fails", ((other,), (other, step, other))), seconds=30)
    assert small.batches == ((step,),)
