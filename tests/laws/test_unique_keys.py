"""The law of unique columns: while sources respect their keys, no two rows share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrickle.model.source import Source
from pgtrickle.plan.operators import Filter, Join, Operator
from pgtrickle.plan.unique_keys import unique_columns
from tests.laws import trees
from tests.laws.trees import Names, source
from tests.laws.zsets import Row, World, chosen, evaluated, respects

KEYED = (source(1, "abc", (("a",),)), source(2, "abc", (("b", "c"),)), source(3, "ab", (("a", "b"), ("b",))))


def lawful(tables: Sequence[Source]) -> st.SearchStrategy[World]:
    """Worlds in which every source respects its keys."""
    bags = []
    for table in tables:
        row = st.tuples(*(trees.values for _ in table.columns))
        unique = st.lists(row, max_size=12).map(partial(_kept, table))
        bags.append(st.tuples(st.just(table.relation), unique.map(Counter)))
    return st.tuples(*bags).map(lambda found: World(dict(found), dict(found)))


def _kept(table: Source, rows: list[Row]) -> list[Row]:
    kept: list[Row] = []
    for row in rows:
        if respects(table, Counter([*kept, row])):
            kept.append(row)
    return kept


@st.composite
def joined(draw: st.DrawFn, tables: Sequence[Source]) -> Operator:
    names = Names()
    op: Operator = draw(trees.scans(names, tables))
    for _ in range(draw(st.integers(0, 3))):
        op = draw(trees.joins(op, draw(trees.scans(names, tables))))
        if draw(st.booleans()):
            op = Filter(op, draw(trees.conditions(op)))
    return op


@settings(max_examples=300, deadline=None)
@given(op=joined(KEYED), world=lawful(KEYED))
def test_unique_columns_are_unique(op, world):
    names = unique_columns(op)
    assert names is not None
    assert all(weight == 1 for weight in chosen(op, evaluated(op, world), names).values())


def test_a_source_without_a_key_makes_nothing_unique():
    names = Names()
    keyed, keyless = trees.scan(KEYED[0], names), trees.scan(source(4), names)
    assert unique_columns(Join(keyed, keyless, ())) is None


def test_a_row_found_by_its_key_adds_no_column():
    names = Names()
    orders, customers = trees.scan(source(4, "abc", (("a",),)), names), trees.scan(KEYED[0], names)
    op = Join(orders, customers, ((f"{orders.alias}.b", f"{customers.alias}.a"),))
    assert unique_columns(op) == (f"{orders.alias}.a",)
