"""Random queries of all of SQL equal PostgreSQL's own answer after every window, and failures are made small.

`make fuzz SECONDS=…` does the same for longer, with another seed each time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.fuzz.batches import Kind
from tests.fuzz.examining import examine, own_analyst
from tests.fuzz.ground import ground
from tests.fuzz.playing import Failure, Play, play
from tests.fuzz.rounds import Round, drawn_round
from tests.fuzz.running import run
from tests.fuzz.shrinking import script, shrunk
from tests.fuzz.simplifying import simpler

SEED = 1


@pytest.mark.slow
@pytest.mark.fuzz
def test_random_stream_tables_equal_their_queries_after_every_window(database, engine, fuzz_seconds):
    with ground(database, engine) as ready:
        player = partial(play, ready)
        tally = run(player, SEED, seconds=fuzz_seconds, shrink_seconds=60, failures=1, tell=lambda _: None)
    assert not tally.stories, "\n".join(tally.stories)
    assert tally.followed > 10


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.own_server
def test_the_operators_of_random_queries_give_the_rows_of_the_queries(fuzz_seconds, pytestconfig):
    with own_analyst(pytestconfig.getoption("--pg")) as analyst:
        player = partial(examine, analyst)
        tally = run(
            player, SEED, seconds=fuzz_seconds / 2, shrink_seconds=30, failures=1, tell=lambda _: None
        )
    assert not tally.stories, "\n".join(tally.stories)
    assert tally.followed > 10


def test_a_seed_makes_the_same_round_again():
    assert drawn_round(7) == drawn_round(7)
    assert drawn_round(7) != drawn_round(8)


def test_a_failure_is_made_small():
    """Here everything fails that reads `gamma` with a WHERE, once `gamma` was updated."""

    def play(drawn: Round) -> list[Play]:
        updates = [
            number
            for number, window in enumerate(drawn.windows, start=1)
            if any(step.kind is Kind.RUN and "update gamma" in step.sql for step in window)
        ]
        plays = [Play(number, query) for number, query in enumerate(drawn.queries)]
        for one in plays:
            if updates and " gamma " in one.query and "where" in one.query.lower():
                one.failure = Failure(one.query, "wrong rows", updates[0], "-- …")
        return plays

    query = (
        "select count(*) as c0 from gamma r1 left join zeta r2 on r2.x = r1.x where r1.k > 1 group by r1.x"
    )
    drawn = next(
        replace(found, queries=(query,))
        for found in map(drawn_round, range(100))
        if play(replace(found, queries=(query,)))[0].failure
    )
    failure = play(drawn)[0].failure
    assert failure is not None
    small, how = shrunk(play, drawn, failure, seconds=30)
    assert [table.name for table in small.tables] == ["gamma"]
    assert small.rows == {"gamma": ()}
    assert len(small.windows) == 1
    assert len(small.windows[0]) == 1
    assert len(how.query) < 60
    assert "-- wrong rows" in list(script(small, how))


def test_simpler_queries_keep_what_orders_rows():
    query = "select k, row_number() over (order by k, x) as n from gamma order by k, n limit 2"
    forms = list(simpler(query))
    assert forms
    assert all("OVER (ORDER BY k, x)" in form for form in forms if "OVER" in form)
    assert all("ORDER BY k, n" in form for form in forms if "LIMIT" in form)
