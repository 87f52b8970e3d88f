"""The laws of binding: what changed is right, what is needed is right, all else is the same twice."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.laws.checking import check
from tests.laws.sources import supersets, worlds
from tests.laws.trees import trees

law = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@law
@given(op=trees(size=4), world=worlds(), more=supersets)
def test_the_difference_of_the_ends_is_the_change_of_the_tree(op, world, more):
    check(op, world, more)
