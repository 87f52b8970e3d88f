"""A stream table that ends Spark again and again is kept away from it; those beside it are not."""

from __future__ import annotations

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.pipeline.suspects import FIRST_SECONDS, MOST_DEATHS, Suspects

FIRST, SECOND = StreamTableId(1), StreamTableId(2)
A, B = frozenset({FIRST}), frozenset({SECOND})


def died(suspects, *computing, memory=False, clock=0.0):
    return suspects.note_death(computing, is_out_of_memory=memory, clock=clock)


def test_a_table_that_was_there_at_every_death_is_isolated_and_one_that_succeeded_since_is_not():
    suspects = Suspects()
    for _ in range(MOST_DEATHS - 1):
        assert not died(suspects, A, B)
        suspects.note_success(B)
    assert suspects.is_suspect(FIRST)
    assert not suspects.is_suspect(SECOND)
    assert died(suspects, A, B) == A
    assert suspects.is_isolated(FIRST, clock=FIRST_SECONDS - 1)
    assert not suspects.is_isolated(SECOND, clock=0)
    assert not suspects.is_isolated(FIRST, clock=FIRST_SECONDS)


def test_a_table_that_computed_alone_when_memory_ran_out_is_isolated_at_once():
    suspects = Suspects()
    assert died(suspects, A, memory=True) == A


def test_of_several_that_computed_when_memory_ran_out_the_one_that_does_it_again_is_isolated():
    suspects = Suspects()
    assert not died(suspects, A, B, memory=True)
    assert died(suspects, B, memory=True) == B
    assert suspects.is_suspect(FIRST)


def test_every_isolation_lasts_longer_than_the_one_before():
    suspects = Suspects()
    died(suspects, A, memory=True)
    died(suspects, A, memory=True, clock=100)
    assert suspects.is_isolated(FIRST, clock=100 + FIRST_SECONDS + 1)


def test_a_death_while_nothing_computed_blames_nobody():
    suspects = Suspects()
    assert not died(suspects, memory=True)
    assert not suspects.is_suspect(FIRST)
