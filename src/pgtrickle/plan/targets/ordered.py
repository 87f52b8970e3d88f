"""Ordered results that end at a limit: the first rows are kept, and a cut of them is shown."""

from __future__ import annotations

from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.query import Block
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Ordering, Top
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.program import Cut, FirstRows, Program
from pgtrickle.plan.targets.rows import Rows
from pgtrickle.plan.targets.shape import Shape

_SPARE = 1000
"""How many rows the state holds beyond the cut, for when others go away."""

_SORTED = frozenset("NSDTB")
"""The categories of types (numbers, strings, dates, spans, booleans) whose values have an order."""


class Ordered(Shape):
    """The rows below the order are followed; those that come early enough are kept."""

    asks_on_apply = True

    def __init__(self, block: Block, types: tuple[tuple[str, PgType], ...], context: Context) -> None:
        top = block.operator
        assert isinstance(top, Top)
        orderings = top.order or _own_order(block)
        names = tuple(dict.fromkeys(ordering.column for ordering in orderings))
        hidden = tuple((f"order {n}", top.column(name).type) for n, name in enumerate(names))
        outputs = (*block.outputs, *((name, column(name)) for name in names))
        self._rows = Rows(Block(top.child, outputs), (*types, *hidden), context)
        self.operator = self._rows.operator
        shown = self._rows.target.outputs
        wanted = top.offset + (top.limit or 0)
        order = tuple((names.index(o.column), o.is_descending, o.has_nulls_first) for o in orderings)
        self._target = FirstRows(
            fields=self._rows.target.fields,
            outputs=shown[: len(types)],
            hidden=shown[len(types) :],
            cut=Cut(order, top.limit, top.offset, top.has_ties),
            query=self._query(),
            depth=wanted * 2 + _SPARE if top.limit is not None and order else None,
        )

    @property
    def description(self) -> str:
        return "the first rows in order, cut from the stored ones"

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        found = self._rows.program(changed)
        return found and Program(found.reads, found.spark_sql, self._target, found.inputs)

    def initial(self) -> Program:
        """Nothing is computed by Spark: PostgreSQL is asked for the first rows."""
        return Program((), "", self._target)

    def recomputation(self) -> Program:
        return self.initial()

    def _query(self) -> str:
        pairs = zip(self._rows.target.fields, self._rows.columns, strict=True)
        listed = ", ".join(f"t.{quoted(c.name)} as {quoted(f.name)}" for f, c in pairs)
        return f"select {listed} from ({postgres_sql(self._rows.written)}) as t"


def _own_order(block: Block) -> tuple[Ordering, ...]:
    """An order where the query has none: any rows will do, so the same ones are kept."""
    shown = [expression.column for _, expression in block.outputs]
    return tuple(
        Ordering(name, is_descending=False, has_nulls_first=False)
        for name in dict.fromkeys(shown)
        if name and block.operator.column(name).type.category in _SORTED
    )
