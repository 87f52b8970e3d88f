"""Combines the reads of an input into the relation with two weights that Spark computes with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pgtrickle.plan.reads import AGAIN, WEIGHT, Input, Role

BEFORE, NOW = "w0", "w1"


def weighted_input(one: Input, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of all reads of an input, each with its weight before the window and after it."""
    parts = [_with_weights(tables[name], role) for name, role in one.reads]
    whole = pa.concat_tables([part for part in parts if part.num_rows] or parts[:1])
    is_taken_off = whole.num_rows and pc.min(whole.column(BEFORE)).as_py() < 0
    return _fold(whole, one) if is_taken_off else whole


def without_repeats(table: pa.Table) -> pa.Table:
    """The rows of a read without those that an earlier read found."""
    if AGAIN not in table.column_names:
        return table
    return table.filter(pc.invert(table.column(AGAIN))).drop_columns([AGAIN])


def _with_weights(table: pa.Table, role: Role) -> pa.Table:
    table = without_repeats(table)
    zero, one = pa.scalar(0, pa.int64()), pa.scalar(1, pa.int64())
    none = pa.repeat(zero, table.num_rows)
    weight: Any = pa.repeat(one, table.num_rows)
    if WEIGHT in table.column_names:
        weight, table = table.column(WEIGHT), table.drop_columns([WEIGHT])
    before, now = {
        Role.CHANGE: (pc.max_element_wise(pc.negate(weight), zero), pc.max_element_wise(weight, zero)),
        Role.NOW: (none, weight),
        Role.BEFORE: (weight, none),
    }.get(role, (weight, weight))
    return table.append_column(BEFORE, before).append_column(NOW, now)


def _fold(table: pa.Table, one: Input) -> pa.Table:
    """Each row once, with its net weights; rows that were read and subtracted again are dropped."""
    names = [field.name for field in one.fields]
    sums = table.group_by(names).aggregate([(BEFORE, "sum"), (NOW, "sum")])
    found = sums.rename_columns(
        [{f"{BEFORE}_sum": BEFORE, f"{NOW}_sum": NOW}.get(n, n) for n in sums.column_names]
    )
    kept = pc.or_(pc.not_equal(found.column(BEFORE), 0), pc.not_equal(found.column(NOW), 0))
    return found.filter(kept).select([*names, BEFORE, NOW])
