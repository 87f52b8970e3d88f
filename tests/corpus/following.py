"""Follows many queries at once: each is loaded, compared, and compared again after each window of changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import psycopg

from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.corpus.asked import WINDOWS
from tests.fixtures.bags import difference


@dataclass(slots=True)
class Followed:
    """A query of the corpus and what became of it; `problems` are wrong or failed refreshes."""

    title: str
    query: str
    table: str
    id: StreamTableId | None = None
    problems: list[str] = field(default_factory=list)
    strategies: list[str] = field(default_factory=list)


def follow(app: psycopg.Connection, engine: Engine, queries: Mapping[str, str]) -> list[Followed]:
    """Create a stream table for each query that PostgreSQL can evaluate, and take all through the windows."""
    tables = list(_created(app, engine, queries))
    _refreshed(app, engine, tables, "the first load")
    for number, window in enumerate(WINDOWS, start=1):
        app.execute(window)
        _refreshed(app, engine, tables, f"window {number}")
    return tables


def _created(app: psycopg.Connection, engine: Engine, queries: Mapping[str, str]) -> Iterator[Followed]:
    for number, (title, query) in enumerate(queries.items()):
        if title.endswith("without order") or "without order " in title:
            # PostgreSQL may give one of several right answers
            continue
        one = Followed(title, query, f"followed_{number}")
        try:
            with app.transaction():
                app.execute(f"select answer::text from ({query}) answer")
                app.execute(
                    "select pgtrickle.create_stream_table(%s, %s, schedule => null)", (one.table, query)
                )
        except psycopg.Error:
            # this version of PostgreSQL does not have it, or it is refused, which the summary says
            continue
        with engine.connection() as connection:
            one.id = find(connection, one.table).id
        yield one


def _refreshed(app: psycopg.Connection, engine: Engine, tables: list[Followed], when: str) -> None:
    for one in tables:
        assert one.id is not None
        try:
            outcome = refresh(engine, one.id, initiated_by="test", waits=True)
        except PgTrickleError as error:
            one.problems.append(f"{when}: {error}")
            continue
        one.strategies.append(outcome.action.value)
        one.problems += [f"{when}: {row}" for row in _differences(app, one)]


def _differences(app: psycopg.Connection, one: Followed) -> list[str]:
    """The rows that differ from PostgreSQL's answer; as text where a column has no equality."""
    stored, wanted = f"select * from {one.table}", one.query
    try:
        return difference(app, stored, wanted)
    except psycopg.errors.UndefinedFunction:
        return difference(app, f"select s::text from ({stored}) s", f"select s::text from ({wanted}) s")
