"""Opens the guard of stream tables, which refuses all writes but ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pgtrickle.postgres.connection import Connection

_FOR_FEW: Final = {"pgtrickle.applying": "on", "enable_seqscan": "off", "jit": "off"}
"""A few rows are looked up by their hash, even if the table was just filled and has no statistics yet.

JIT compilation of such a statement costs more than it saves.
"""
_FOR_MANY: Final = {"pgtrickle.applying": "on", "enable_seqscan": "on", "jit": "off", "work_mem": "64MB"}

_OPEN: Final = """
    with kept(texts) as materialized (
        select array_agg(coalesce(current_setting(s.name, true), '') order by s.n)::text
        from unnest(%(names)s::text[]) with ordinality as s(name, n)
    )
    select set_config(%(place)s, k.texts, true), (
        select count(set_config(s.name, s.value, true))
        from unnest(%(names)s::text[], %(values)s::text[]) as s(name, value) where k.texts <> '')
    from kept k
"""
_CLOSE: Final = """
    select set_config(s.name, coalesce(nullif(s.value, ''), 'off'), true)
    from unnest(%(names)s::text[], current_setting(%(place)s)::text[]) as s(name, value)
"""


@contextmanager
def open_guard(connection: Connection, *, few: bool) -> Iterator[None]:
    """Open the guard of stream tables for this transaction, and restore the settings at the end.

    PostgreSQL itself keeps what they were, in a setting, so that no answer has to arrive before the next
    statement is sent. An open guard may be opened for many rows once more.
    """
    settings = _FOR_FEW if few else _FOR_MANY
    given = {
        "names": list(settings),
        "values": list(settings.values()),
        "place": "pgtrickle.before_few" if few else "pgtrickle.before_many",
    }
    connection.execute(_OPEN, given)
    yield
    connection.execute(_CLOSE, given)
