"""Every query of the corpus equals PostgreSQL's answer, after the first load and after each window."""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from pgtrickle.refresh.engine import Engine
from tests.corpus.asked import FILES, QUERIES, queries_of
from tests.corpus.following import follow

SAMPLE: Final = dict(list(QUERIES.items())[::20])


def check(app: psycopg.Connection, engine: Engine, queries: dict[str, str]) -> None:
    found = follow(app, engine, queries)
    if not found:
        pytest.skip("this server refuses all of it")
    wrong = [f"{one.title}\n{one.query}\n  " + "\n  ".join(one.problems[:6]) for one in found if one.problems]
    assert not wrong, "\n\n".join(wrong)


def test_a_sample_of_the_corpus_is_followed_exactly(app: psycopg.Connection, engine: Engine) -> None:
    check(app, engine, SAMPLE)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.every_postgres
@pytest.mark.parametrize("file", FILES)
def test_the_whole_corpus_is_followed_exactly(file: str, app: psycopg.Connection, engine: Engine) -> None:
    check(app, engine, queries_of(file))
