"""Opens the guard of stream tables, which refuses all writes but ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgtrickle.postgres.connection import Connection


@contextmanager
def open_guard(connection: Connection, *, few: bool) -> Iterator[None]:
    """Open the guard of stream tables for this transaction, and restore the settings at the end.

    A few rows are looked up by their hash even if the table was just filled and the planner has no statistics
    yet. JIT compilation of such a statement costs more than it saves.
    """
    names = ("pgtrickle.applying", "enable_seqscan", "jit", "work_mem")
    settings = ("on", "off", "off", None) if few else ("on", "on", "off", "64MB")
    query = """
        select array_agg(current_setting(name, true) order by n),
            array_agg(set_config(name, coalesce(value, current_setting(name, true), ''), true) order by n)
        from unnest(%s::text[], %s::text[]) with ordinality as s(name, value, n)
    """
    row = connection.execute(query, (list(names), list(settings))).fetchone()
    assert row is not None
    yield
    was_open, *others = row[0]
    connection.execute(query, (list(names), [was_open or "off", *others]))
