"""Draws small sources, with nulls and duplicates, before and after a window of changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import strategies as st

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
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

RELATIONS = tuple(s.relation for s in SOURCES)
supersets = st.frozensets(st.sampled_from(RELATIONS), max_size=2)
"""Sources that count as changed although nothing is left of their change."""


def rows_of(table: Source) -> st.SearchStrategy[Row]:
    """Rows of a table."""
    return st.tuples(*(values for _ in table.columns))


def worlds(sources: Sequence[Source] = SOURCES) -> st.SearchStrategy[World]:
    """Every source before and after a window, in which some change; what is deleted was there."""
    windows = [
        st.tuples(
            st.lists(rows_of(table), max_size=5),
            st.lists(rows_of(table), max_size=2),
            st.sampled_from([0, 0, 1, 6]),
            st.booleans(),
        )
        for table in sources
    ]
    return st.tuples(*windows).map(lambda drawn: _world(sources, drawn))


def _world(sources: Sequence[Source], drawn: Sequence[tuple[list[Row], list[Row], int, bool]]) -> World:
    old: dict[RelationId, ZSet] = {}
    new: dict[RelationId, ZSet] = {}
    for table, (before, inserted, deleted, is_changed) in zip(sources, drawn, strict=True):
        old[table.relation] = Counter(before)
        kept = [row for i, row in enumerate(before) if not (deleted >> i) & 1]
        new[table.relation] = Counter(kept + inserted) if is_changed else Counter(before)
    return World(old, new)
