"""Results without groups at the top: the change of the rows is the change of the table."""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.query import Block
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.carriers import carrier_of, verbatim
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Column, Join, Nothing, Operator, Project, Window, WindowCall
from pgtrickle.plan.passes.bind import bind
from pgtrickle.plan.passes.bind.reads import inputs_of
from pgtrickle.plan.passes.place import place, require_equality
from pgtrickle.plan.passes.prune import prune, prune_as_written
from pgtrickle.plan.passes.spark_sql import End, change_sql
from pgtrickle.plan.program import Output, Program, RowsTarget
from pgtrickle.plan.reads import Read
from pgtrickle.plan.rules.needs import EVERYTHING
from pgtrickle.plan.targets.shape import Shape
from pgtrickle.plan.targets.unique_key import unique_columns


class Rows(Shape):
    """Weighted rows of the operator, folded, go into the stream table."""

    def __init__(self, block: Block, types: tuple[tuple[str, PgType], ...], context: Context) -> None:
        pushdown = ScanPushdown(context, block.operator)
        has_joins = any(isinstance(part, Join) for part in block.operator.walk())
        pushdown.prefetch_types(expression for _, expression in block.outputs)
        shown = [pushdown.push_output(expression, has_joins=has_joins) for _, expression in block.outputs]
        needed = sorted({name for expression in shown for name in expression.columns})
        operator = _shown_verbatim(pushdown.operator)
        self.operator = prune(place(operator), needed)
        require_equality(self.operator)
        self.written = prune_as_written(operator, needed)
        self.columns = [operator.column(name) for name in needed]
        short = {name: f"f{number}" for number, name in enumerate(needed)}
        outputs = tuple(
            Output(
                name,
                pg_type.text,
                expression.over(lambda n: quoted(short[n])),
                pg_type.domain,
                pg_type.collation,
            )
            for (name, pg_type), expression in zip(types, shown, strict=True)
        )
        plain = {e.column: name for (name, _), e in zip(types, shown, strict=True) if e.column}
        unique = unique_columns(operator)
        has_key = unique is not None and all(name in plain for name in unique)
        key = tuple(plain[name] for name in unique) if unique and has_key else None
        self._fields = tuple(Field(short[c.name], c.carrier) for c in self.columns)
        self.target = RowsTarget(self._fields, outputs, key)

    @property
    def description(self) -> str:
        key = self.target.key
        return f"rows matched by key ({', '.join(key)})" if key else "rows matched as a whole"

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        bound, reads = bind(self.operator, changed)
        return None if isinstance(bound, Nothing) else self._program(bound, reads, End.CHANGE)

    def initial(self) -> Program:
        bound, reads = bind(self.operator, frozenset(), (EVERYTHING,))
        return self._program(bound, reads, End.NOW)

    def _program(self, bound: Operator, reads: tuple[Read, ...], end: End) -> Program:
        named = tuple(
            Column(field.name, c.type, c.carrier) for field, c in zip(self._fields, self.columns, strict=True)
        )
        result = Project(bound, named, tuple(column(c.name) for c in self.columns))
        return Program(reads, change_sql(result, end), self.target, inputs_of(bound))


def _shown_verbatim(operator: Operator) -> Operator:
    """The operator with numbers of window functions as PostgreSQL writes them: nothing compares them."""
    if not isinstance(operator, Window):
        return operator
    calls = tuple(replace(call, column=_verbatim(call)) for call in operator.calls)
    return replace(operator, child=_shown_verbatim(operator.child), calls=calls)


def _verbatim(call: WindowCall) -> Column:
    own = call.column
    is_text = own.carrier == carrier_of(own.type)
    return replace(own, carrier=verbatim(own.type)) if is_text else own
