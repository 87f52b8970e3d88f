"""Draws small sources, with nulls and duplicates, before and after a window of changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from hypothesis import strategies as st

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.operators import Operator, Scan
from tests.laws.rows import Row
from tests.laws.zsets import World, ZSet

INTEGER = PgType("integer", "integer", "b", "N")
BIGINT = PgType("bigint", "bigint", "b", "N")
BOOLEAN = PgType("boolean", "boolean", "b", "B")

Keys = tuple[tuple[str, ...], ...]

values = st.sampled_from([1, None, 0, 2])


def source(number: int, columns: str = "abc", keys: Keys = (), indexes: Keys | None = None) -> Source:
    """A table of nullable integers; its keys are indexed unless other indexes are given."""
    described = tuple(SourceColumn(name, i + 1, INTEGER, True) for i, name in enumerate(columns))
    name = RelationName("public", f"t{number}")
    return Source(
        RelationId(number), name, SourceKind.TABLE, described, keys, keys if indexes is None else indexes
    )


SOURCES = (
    source(1, "abc", indexes=(("a",),)),
    source(2, "abc", indexes=(("b", "a"), ("c",))),
    source(3, "ab"),
    source(4, "abc"),
)

ONE_ROW = source(5, "ab", keys=((),))
"""A source with exactly one row at each end."""

supersets = st.frozensets(st.sampled_from([s.relation for s in SOURCES]), max_size=1)
"""Sources that count as changed although nothing is left of their change."""


def rows_of(table: Source) -> st.SearchStrategy[Row]:
    """Rows of a table."""
    return st.sampled_from(list(product([1, 0, None, 2], repeat=len(table.columns))))


@st.composite
def worlds(draw: st.DrawFn, sources: Sequence[Source] = SOURCES) -> World:
    """Every source before and after a window, in which some of them change; what is deleted was there."""
    first = draw(st.integers(0, len(sources) - 1))
    windows = []
    for number, table in enumerate(sources):
        row = rows_of(table)
        before = draw(st.lists(row, min_size=2, max_size=6))
        is_changed = number == first or draw(st.booleans())
        inserted = draw(st.lists(row, max_size=2)) if is_changed else []
        deleted = draw(st.sampled_from([1, 0, 6])) if is_changed else 0
        windows.append((before, inserted, deleted))
    return _world(sources, windows, draw(st.integers(1, 3)))


def _world(sources: Sequence[Source], drawn: Sequence[tuple[list[Row], list[Row], int]], now: int) -> World:
    old: dict[RelationId, ZSet] = {}
    new: dict[RelationId, ZSet] = {}
    for table, (before, inserted, deleted) in zip(sources, drawn, strict=True):
        if table.keys == ONE_ROW.keys:
            old[table.relation] = Counter(before[:1])
            new[table.relation] = Counter(inserted[:1] or before[:1])
            continue
        old[table.relation] = Counter(before)
        kept = [row for i, row in enumerate(before) if not (deleted >> i) & 1]
        new[table.relation] = Counter(kept + inserted)
    return World(old, new, 1, now)


def used(op: Operator) -> list[Source]:
    """The sources that a tree scans."""
    return list(dict.fromkeys(part.source for part in op.walk() if isinstance(part, Scan))) or [SOURCES[0]]
