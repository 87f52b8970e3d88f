"""Random queries over random changes: every stream table equals its query after every window.

`PGTRICKLE_FUZZ_SECONDS` gives it longer, `PGTRICKLE_FUZZ_SEED` begins with another seed. Each round
draws from its own seed, so that a failure is repeated by beginning with the seed that it shows.
"""

from __future__ import annotations

import os
import time
from itertools import count
from random import Random

import pytest

from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import Action
from tests.end_to_end.random_queries import Query, query
from tests.end_to_end.random_writers import DECLARATIONS, Writer, first_rows
from tests.fixtures.databases import APP, TRICKLE

SECONDS = float(os.environ.get("PGTRICKLE_FUZZ_SECONDS", "40"))
SEED = int(os.environ.get("PGTRICKLE_FUZZ_SEED", "1"))
QUERIES = 5
WINDOWS = 4


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 240)
def test_random_stream_tables_equal_their_queries_after_every_window(admin, app, connect, stream_table):
    deadline = time.monotonic() + SECONDS
    for seed in count(SEED):
        if time.monotonic() > deadline:
            break
        _round(seed, admin, app, connect, stream_table)


def _round(seed, admin, app, connect, stream_table):
    draw = Random(seed)
    schema = f"round_{seed}"
    admin.execute(f"create schema {schema} authorization {APP}")
    admin.execute(f"grant usage on schema {schema} to {TRICKLE}")
    app.execute(f"set search_path = {schema}")
    for declaration in DECLARATIONS:
        app.execute(f"create table {declaration}")
    app.execute(f"grant select, trigger on all tables in schema {schema} to {TRICKLE}")
    story = first_rows(draw)
    for statement in story:
        app.execute(statement)
    queries = [query(draw) for _ in range(QUERIES)]
    writers = [Writer(name, connect(APP), story) for name in ("first", "second")]
    for writer in writers:
        writer.connection.execute(f"set search_path = {schema}")
        writer.connection.commit()
    try:
        tables = [_made(stream_table, schema, n, q) for n, q in enumerate(queries)]
        for _ in range(WINDOWS):
            _write(draw, writers)
            story.append("-- refresh")
            for table, drawn in zip(tables, queries, strict=True):
                _follows(table, drawn)
    except (AssertionError, PgTrickleError) as error:
        told = "\n".join(story)
        raise AssertionError(f"seed {seed}\n{_texts(queries)}\n{told}\n{error}") from error
    for writer in writers:
        writer.connection.close()
    app.execute("reset search_path")


def _made(stream_table, schema: str, number: int, drawn: Query):
    try:
        return stream_table(drawn.sql, name=f"{schema}.stream_{number}")
    except Exception as error:
        raise AssertionError(f"{drawn.sql}\ncannot be created: {error}") from error


def _write(draw: Random, writers: list[Writer]) -> None:
    for _ in range(draw.randint(0, 12)):
        draw.choice(writers).acts(draw)
    for writer in writers:
        if draw.random() < 0.7:
            writer.ends(draw)


def _follows(table, drawn: Query) -> None:
    try:
        outcome = table.refresh()
    except Exception as error:
        raise AssertionError(f"{drawn.sql}\ncannot be refreshed: {error}") from error
    if drawn.is_differential and outcome.action not in {Action.DIFFERENTIAL, Action.NO_DATA}:
        raise AssertionError(f"{drawn.sql}\nis not differential: {outcome.reason}")
    table.equals_its_query()


def _texts(queries: list[Query]) -> str:
    return "\n".join(drawn.sql for drawn in queries)
