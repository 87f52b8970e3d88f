"""The law of unique columns: while sources respect their keys, no two rows share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrickle.model.source import Source
from pgtrickle.plan.operators import Filter, Join, Operator
from pgtrickle.plan.targets.unique_key import unique_columns
from tests.fixtures.lanes import examples
from tests.laws.parts import Names, conditions, scan, scans
from tests.laws.rows import Row, respects
from tests.laws.sources import rows_of, source
from tests.laws.trees import joins, marks
from tests.laws.zsets import Bags, chosen, truth

KEYED = (source(1, "abc", (("a",),)), source(2, "abc", (("b", "c"),)), source(3, "ab", (("a", "b"), ("b",))))


def lawful(tables: Sequence[Source]) -> st.SearchStrategy[Bags]:
    """Sources that respect their keys."""
    bags = [
        st.tuples(st.just(table.relation), st.lists(rows_of(table), max_size=12).map(partial(_kept, table)))
        for table in tables
    ]
    return st.tuples(*bags).map(lambda found: {relation: Counter(rows) for relation, rows in found})


def _kept(table: Source, rows: list[Row]) -> list[Row]:
    kept: list[Row] = []
    for row in rows:
        if respects(table, [*kept, row]):
            kept.append(row)
    return kept


@st.composite
def joined(draw: st.DrawFn, tables: Sequence[Source]) -> Operator:
    """Scans that are joined, filtered and marked."""
    names = Names()
    op: Operator = draw(scans(names, tables))
    for _ in range(draw(st.integers(0, 3))):
        combined = draw(st.sampled_from([joins, joins, marks]))
        op = draw(combined(op, draw(scans(names, tables)), names))
        if draw(st.booleans()):
            op = Filter(op, draw(conditions(op)))
    return op


@settings(max_examples=examples(200), deadline=None)
@given(op=joined(KEYED), bags=lawful(KEYED))
def test_unique_columns_are_unique(op, bags):
    names = unique_columns(op)
    assert names is not None
    assert all(weight == 1 for weight in chosen(op, truth(op, bags), names).values())


def test_a_source_without_a_key_makes_nothing_unique():
    names = Names()
    keyed, keyless = scan(KEYED[0], names), scan(source(4), names)
    assert unique_columns(Join(keyed, keyless, ())) is None


def test_a_row_found_by_its_key_adds_no_column():
    names = Names()
    orders, customers = scan(source(4, "abc", (("a",),)), names), scan(KEYED[0], names)
    op = Join(orders, customers, ((f"{orders.alias}.b", f"{customers.alias}.a"),))
    assert unique_columns(op) == (f"{orders.alias}.a",)
