"""Queries of a round on PostgreSQL alone: their operators must say the same, which takes no refresh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.plan.compile import regenerate
from tests.fixtures.databases import TEMPLATE, Templates, create_database
from tests.fixtures.servers import EMBEDDED, new_server
from tests.fuzz.ground import TIMEOUT
from tests.fuzz.playing import MOST_ROWS, PLANNERS, WRONG, Failure, Play
from tests.fuzz.rounds import Round
from tests.plan.analyst import Analyst, evaluated


def examine(analyst: Analyst, drawn: Round, *, keeps_all: bool = False) -> list[Play]:
    """Compare each query of a round with its operators, on the rows that the tables have at first."""
    plays = [Play(number, query) for number, query in enumerate(drawn.queries)]
    with analyst.connection.transaction(force_rollback=True):
        for statement in drawn.arrangement:
            analyst.connection.execute(statement)
        for one in plays:
            with analyst.connection.transaction(force_rollback=True):
                _examined(analyst, one, most=None if keeps_all else MOST_ROWS)
    return plays


def _examined(analyst: Analyst, one: Play, *, most: int | None) -> None:
    try:
        with analyst.connection.transaction(force_rollback=True):
            expected = analyst.rows(one.query)
    except psycopg.Error:
        one.is_discarded = True
        return
    if most is not None and len(expected) > most:
        one.is_discarded = True
        return
    one.mode = RefreshMode.DIFFERENTIAL
    try:
        given = analyst.canonical(one.query)
        if analyst.canonical(regenerate(given)) != given:
            one.failure = Failure(one.query, "read otherwise", 0, regenerate(given))
            return
        actual = analyst.rows(evaluated(analyst.block(one.query)))
    except UnsupportedQuery as refusal:
        one.mode, one.reason = RefreshMode.FULL, refusal.message
    except Exception as error:
        # whatever it is, it must not escape: a crash is a finding
        one.failure = Failure(one.query, f"cannot be analysed: {type(error).__name__}", 0, str(error))
    else:
        if actual != expected and not _is_ambiguous(analyst, one.query, expected):
            told = [f"-- expected: {' '.join(expected[:40])}", f"-- actual:   {' '.join(actual[:40])}"]
            one.failure = Failure(one.query, WRONG, 0, "\n".join(told))


def _is_ambiguous(analyst: Analyst, query: str, expected: list[str]) -> bool:
    """Whether PostgreSQL gives other rows when it plans otherwise."""
    for settings in PLANNERS:
        with analyst.connection.transaction(force_rollback=True):
            for setting in settings:
                analyst.connection.execute(f"set local {setting} = off")
            if analyst.rows(query) != expected:
                return True
    return False


@contextmanager
def own_analyst(version: int = EMBEDDED) -> Iterator[Analyst]:
    """An analyst with a server of its own."""
    with new_server(version) as server:
        Templates().ensure(server)
        database = create_database(server, "examined", TEMPLATE)
        with closing(database.connect(SUPERUSER)) as connection:
            connection.execute(f"set statement_timeout = '{TIMEOUT}'")
            connection.execute("set jit = off")
            connection.commit()
            yield Analyst(connection)
