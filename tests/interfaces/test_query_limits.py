"""The limits of queries come from the environment of the process that compiles."""

from __future__ import annotations

import pgtrickle
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from tests.fixtures.databases import TRICKLE


def test_an_engine_compiles_under_the_limits_of_its_environment(database, monkeypatch):
    with pgtrickle.connect(database.dsn(TRICKLE)) as trickle:
        assert trickle.engine.query_limits == USUAL_LIMITS
    monkeypatch.setenv("PGTRICKLE_MAX_RELATIONS", "7")
    with pgtrickle.connect(database.dsn(TRICKLE)) as trickle:
        assert trickle.engine.query_limits == QueryLimits(max_relations=7)
