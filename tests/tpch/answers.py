"""When a stream table is right: it holds what PostgreSQL itself answers, or might as well answer."""

from __future__ import annotations

import psycopg

from tests.fixtures.bags import assert_same_bag, difference
from tests.tpch.published import Query


def assert_answers(connection: psycopg.Connection, table: str, query: Query) -> None:
    """Equal as bags, both ways; where ties at the cut leave a choice, any choice is right."""
    if not query.tied_by:
        assert_same_bag(connection, f"select * from {table}", query.text)
        return
    keys = ", ".join(query.tied_by)
    assert_same_bag(connection, f"select {keys} from {table}", f"select {keys} from ({query.text}) as cut")
    rows = difference(connection, f"select * from {table}", query.without_limit)
    unknown = [row for row in rows if row.startswith("+")]
    assert not unknown, f"{table} has rows that no answer to {query.name} has:\n" + "\n".join(unknown[:20])


def rows_of(connection: psycopg.Connection, query: str) -> list[str]:
    """The rows as text in one order, to see whether an answer has changed."""
    return sorted(row[0] for row in connection.execute(f"select answer::text from ({query}) as answer"))
