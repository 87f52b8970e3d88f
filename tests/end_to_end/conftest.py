"""Several stream tables over the same sources, followed together through the same windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
import pytest

from pgtrickle.model.stream_table import Action
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.stream_tables import StreamTable, StreamTables

INCREMENTAL = frozenset({Action.DIFFERENTIAL, Action.NO_DATA})


@dataclass(frozen=True, slots=True)
class Followers:
    """Stream tables that must equal their queries after every window."""

    tables: tuple[StreamTable, ...]
    app: psycopg.Connection

    def after(self, *statements: str, actions: frozenset[Action] = INCREMENTAL) -> None:
        """Run the statements as the application in one transaction; then all tables follow."""
        with self.app.transaction():
            for statement in statements:
                self.app.execute(statement)
        self.follow(actions=actions)

    def follow(self, *, actions: frozenset[Action] = INCREMENTAL) -> None:
        for table in self.tables:
            outcome = table.refresh()
            assert outcome.action in actions, f"{table.query}\nwas {outcome.action}: {outcome.reason}"
            table.equals_its_query()

    def stand_still(self) -> None:
        """Nothing has changed: a refresh does nothing, and the rows stay right."""
        self.follow(actions=frozenset({Action.NO_DATA}))

    def read_the_same(self) -> None:
        """Equal to the letter: `1.0` is not `1.00` here."""
        for table in self.tables:
            assert_same_bag(
                self.app,
                f"select t::text from {table.name} t",
                f"select t::text from ({table.query}) t",
            )


Followed = Callable[..., Followers]
"""Called as `followed("select …", "select …")`."""


@pytest.fixture
def followed(stream_table: StreamTables, app: psycopg.Connection) -> Followed:
    """Creates stream tables that must be differential, and loads them."""

    def create(*queries: str, mode: str = "DIFFERENTIAL") -> Followers:
        return Followers(tuple(stream_table(query, mode=mode) for query in queries), app)

    return create
