"""The caches on the command line."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def explained(source, cli):
    source("orders(id int primary key, amount int)")
    cli("create", "sales", "-q", "select sum(amount) as total from orders")
    assert cli("explain", "sales", role="trickle").exit_code == 0


@pytest.mark.usefixtures("explained")
def test_clearing_tells_how_many_compiled_queries_there_were(cli):
    answer = cli("clear-caches", role="trickle")
    assert (answer.exit_code, answer.out.strip()) == (
        0,
        "Cleared the caches: 1 compiled query removed from the catalog.",
    )
    assert json.loads(cli("clear-caches", "--json", role="trickle").out) == {"entries": 0}


@pytest.mark.usefixtures("explained")
def test_who_does_not_run_pgtrickle_may_not_clear(cli):
    answer = cli("clear-caches")
    assert answer.exit_code != 0
    assert "grant trickle to app" in answer.err


def test_a_cache_cannot_have_less_than_no_room(cli):
    answer = cli("run", "--template-cache-max-entries", "-1", role="trickle")
    assert answer.exit_code == 2
    assert "--template-cache-max-entries" in answer.err
