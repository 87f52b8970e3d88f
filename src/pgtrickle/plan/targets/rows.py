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
from pgtrickle.plan.operators import Column, Join, Leaf, Nothing, Operator, Project, Window, WindowCall
from pgtrickle.plan.passes.bind import bind
from pgtrickle.plan.passes.bind.reads import inputs_of
from pgtrickle.plan.passes.place import place, require_equality
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.passes.prune import prune, prune_as_written
from pgtrickle.plan.passes.spark_sql import change_sql, rows_sql
from pgtrickle.plan.program import Output, Program, RowsTarget
from pgtrickle.plan.rules.needs import EVERYTHING
from pgtrickle.plan.targets.recomputed import recomputed
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
        self._types = types
        is_copied = any(source.copy for source in context.definition.sources.values())
        self._query = None if is_copied else context.definition.query.rstrip().removesuffix(";")

    @property
    def description(self) -> str:
        key = self.target.key
        return f"rows matched by key ({', '.join(key)})" if key else "rows matched as a whole"

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        bound, reads = bind(self.operator, changed)
        if isinstance(bound, Nothing):
            return None
        is_read = isinstance(bound, Leaf) and not bound.rows and len(reads) == 1
        passes = tuple(c.name for c in self.columns) if is_read else None
        return Program(reads, change_sql(self._result(bound)), self.target, inputs_of(bound), passes)

    def initial(self) -> Program:
        bound, reads = bind(self.operator, frozenset(), (EVERYTHING,))
        # applying them adds equal rows up, or inserts each
        return Program(reads, rows_sql(self._result(bound)), self.target, inputs_of(bound))

    def recomputation(self) -> Program:
        """The query itself, unless it reads copies: PostgreSQL plans it best as it was written."""
        if self._query is None:
            pairs = zip(self._fields, self.columns, strict=True)
            listed = ", ".join(f"t.{quoted(c.name)} as {quoted(f.name)}" for f, c in pairs)
            query = f"select {listed} from ({postgres_sql(self.written)}) as t"
            return recomputed(query, self._fields, self.target, has_weight=True)
        fields = [Field(f"f{number}", verbatim(pg_type)) for number, (_, pg_type) in enumerate(self._types)]
        outputs = tuple(
            replace(output, sql=quoted(field.name))
            for output, field in zip(self.target.outputs, fields, strict=True)
        )
        target = RowsTarget(tuple(fields), outputs, self.target.key)
        names = ", ".join(quoted(field.name) for field in fields)
        query = f"select * from ({self._query}) as t{f'({names})' if names else ''}"
        return recomputed(query, fields, target, has_weight=True)

    def _result(self, bound: Operator) -> Project:
        """The rows with the fields of the target."""
        named = tuple(
            Column(field.name, c.type, c.carrier) for field, c in zip(self._fields, self.columns, strict=True)
        )
        return Project(bound, named, tuple(column(c.name) for c in self.columns))


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
