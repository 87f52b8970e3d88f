"""Draws needs: some columns of a tree, and keys for them."""

from __future__ import annotations

from hypothesis import strategies as st

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.reads import KeyColumns
from pgtrickle.plan.rules.needs import Need
from tests.laws.checking import GIVEN, Needed
from tests.laws.sources import BOOLEAN, values

_WIDTH = 4
"""Keys have two numbers and two truth values: a want takes of them what its columns are."""


@st.composite
def needs(draw: st.DrawFn, op: Operator) -> Needed:
    """One or two wants over the same keys."""
    truths = st.sampled_from([True, False, None])
    keys = draw(st.lists(st.tuples(values, values, truths, truths), max_size=2))
    wants = tuple(draw(_wants(op)) for _ in range(draw(st.sampled_from([1, 1, 2]))))
    return Needed(tuple(dict.fromkeys(wants)), tuple(keys))


@st.composite
def _wants(draw: st.DrawFn, op: Operator) -> Need:
    columns = draw(st.lists(st.sampled_from(op.columns), max_size=2, unique=True)) if op.columns else []
    fields = tuple(f"k{n + 2 * (c.type is BOOLEAN)}" for n, c in enumerate(columns))
    is_null_safe = bool(columns) and draw(st.booleans())
    return Need(tuple(c.name for c in columns), (KeyColumns(GIVEN, fields),), is_null_safe)
