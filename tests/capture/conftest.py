"""A reader that follows one source through its change buffers, and checks that it arrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from itertools import count

import psycopg
import pytest
from psycopg import sql

from tests.fixtures.databases import Database


class Follower:
    """Knows a table at one snapshot; adding the window up to the next must give the table at that one."""

    def __init__(self, database: Database, table: str, relid: int, columns: list[tuple[str, int]]) -> None:
        self._database = database
        self._columns = columns
        self.table, self.relid = table, relid
        self.rows: Counter[str] = Counter()
        self.frontier, self.rows, _, _ = self._look(None)

    def starts_over(self) -> None:
        """Read the whole table again, as a stream table does that is computed anew."""
        self.frontier, self.rows, _, _ = self._look(None)

    def catches_up(self) -> int:
        """Move to now, and fail unless the change rows explain the difference; how many there were."""
        frontier, rows, changes, is_truncated = self._look(self.frontier)
        if not is_truncated:
            arrived = Counter(self.rows)
            arrived.update(changes)
            assert +arrived == rows
            assert not -arrived
        self.frontier, self.rows = frontier, rows
        self.was_truncated = is_truncated
        return changes.total()

    def changes(self) -> Counter[str]:
        """The change rows since the frontier, weights added up; the follower stays where it is."""
        return Counter({row: weight for row, weight in self._look(self.frontier)[2].items() if weight})

    def is_marked(self) -> bool:
        """Whether a change that could not be captured has left its marker."""
        marks = sql.SQL(" union all ").join(
            sql.SQL("select from {} where weight = 0").format(
                sql.Identifier("pgtrickle_changes", f"changes_{self.relid}_{side}")
            )
            for side in (0, 1)
        )
        with closing(self._database.connect()) as connection:
            return connection.execute(marks).fetchone() is not None

    def _look(self, since: str | None) -> tuple[str, Counter[str], Counter[str], bool]:
        with closing(self._database.connect()) as connection:
            connection.execute("set transaction isolation level repeatable read read only")
            row = connection.execute("select pg_current_snapshot()::text").fetchone()
            assert row is not None
            names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in self._columns)
            table = sql.SQL("select row({})::text from {}").format(names, sql.SQL(self.table))
            rows = Counter(text for (text,) in connection.execute(table))
            changes: Counter[str] = Counter()
            is_truncated = False
            for weight, text in connection.execute(self._window(since)) if since else ():
                is_truncated |= weight == 0
                changes[text] += weight
            # closing alone would leave the locks to a backend that ends when it gets to it
            connection.rollback()
            return row[0], rows, changes, is_truncated

    def _window(self, since: str | None) -> sql.Composed:
        columns = sql.SQL(", ").join(sql.Identifier(f"c{number}") for _, number in self._columns)
        arms = [
            sql.SQL(
                "select weight, row({columns})::text from {buffer} where xid >= pg_snapshot_xmin({since})"
                " and not pg_visible_in_snapshot(xid, {since})"
            ).format(
                columns=columns,
                buffer=sql.Identifier("pgtrickle_changes", f"changes_{self.relid}_{side}"),
                since=sql.SQL("{}::pg_snapshot").format(sql.Literal(since)),
            )
            for side in (0, 1)
        ]
        return sql.SQL(" union all ").join(arms)


Follow = Callable[..., Follower]
"""Called as `follow("orders")`, or with the query of the stream table that asks for the capture."""


@pytest.fixture
def follow(app: psycopg.Connection, database: Database) -> Follow:
    numbers = count(1)

    def start(table: str, query: str | None = None) -> Follower:
        name = f"follower_{next(numbers)}"
        app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query or f"select * from {table}"))
        row = app.execute("select %s::regclass::oid::bigint", (table,)).fetchone()
        assert row is not None
        columns = app.execute(
            "select a.attname, a.attnum from pg_attribute a join pgtrickle.pgt_sources s"
            " on s.source_relid = a.attrelid and a.attnum = any (s.columns_captured)"
            " where a.attrelid = %s order by a.attnum",
            (row[0],),
        ).fetchall()
        return Follower(database, table, row[0], columns)

    return start
