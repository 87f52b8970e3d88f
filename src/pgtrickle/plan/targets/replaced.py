"""Groups at the top that only PostgreSQL can evaluate: the affected ones are evaluated again."""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.carriers import carrier_of, verbatim
from pgtrickle.plan.expressions import Expression, column, raw
from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.operators import Aggregate, Answer, Column, Evaluated, Operator, Project
from pgtrickle.plan.passes.bind import bind
from pgtrickle.plan.passes.bind.reads import inputs_of
from pgtrickle.plan.passes.place import require_equality
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.passes.prune import prune
from pgtrickle.plan.program import Program, ReplacedGroups
from pgtrickle.plan.reads import WEIGHT, Read
from pgtrickle.plan.refusals import refuse
from pgtrickle.plan.rules.needs import EVERYTHING
from pgtrickle.plan.targets.groups import Grouped, group_outputs
from pgtrickle.plan.targets.recomputed import recomputed
from pgtrickle.plan.targets.shape import Shape

_ALL = PgType("integer", "integer", "b", "N")


class Replaced(Shape):
    """PostgreSQL evaluates the groups that a change touches; they replace the stored ones."""

    def __init__(self, grouped: Grouped) -> None:
        aggregate = grouped.aggregate
        for group_key in aggregate.keys:
            if not group_key.column.type.deterministic:
                raise refuse(f"grouping by {group_key.column.name}, whose collation is not deterministic,")
        self._columns = aggregate.columns
        self._keys = tuple(
            Field(f"k{number}", key.column.carrier) for number, key in enumerate(aggregate.keys)
        )
        self._values = tuple(
            Field(f"v{number}", verbatim(call.column.type)) for number, call in enumerate(aggregate.calls)
        )
        shown: Operator = _shown_verbatim(aggregate)
        fields = (*self._keys, *self._values)
        finals = {c.name: quoted(f.name) for c, f in zip(aggregate.columns, fields, strict=True)}
        if not self._keys:
            # the one group of all rows: it has a key so that it can be found
            shown, key = _with_key(_shown_verbatim(aggregate))
            self._keys, self._columns = (Field("k0", key.carrier),), (key, *self._columns)
        evaluated = Evaluated(shown, str(aggregate.calls[0].expression) if aggregate.calls else "grouping")
        self.operator = prune(evaluated, {c.name for c in self._columns})
        require_equality(self.operator)
        having, outputs, unique = group_outputs(grouped, finals)
        self._target = ReplacedGroups(self._keys, self._values, having, outputs, unique)

    @property
    def description(self) -> str:
        return "affected groups evaluated again by PostgreSQL"

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        bound, reads = bind(self.operator, changed)
        return self._program(bound, reads) if isinstance(bound, Answer) else None

    def initial(self) -> Program:
        bound, reads = bind(self.operator, frozenset(), (EVERYTHING,))
        assert isinstance(bound, Answer)
        return self._program(bound, reads)

    def recomputation(self) -> Program:
        fields = (*self._keys, *self._values)
        pairs = zip(fields, self._columns, strict=True)
        listed = ", ".join(f"t.{quoted(c.name)} as {quoted(f.name)}" for f, c in pairs)
        query = f"select {listed} from ({postgres_sql(self.operator)}) as t"
        return recomputed(query, fields, self._target, has_weight=True)

    def _program(self, bound: Answer, reads: tuple[Read, ...]) -> Program:
        fields = (*self._keys, *self._values)
        listed = [f"{spark_name(c.name)} as {f.name}" for c, f in zip(self._columns, fields, strict=True)]
        now = f"select {', '.join(listed)}, 1L as {WEIGHT} from {bound.input.name} where w1 > 0"
        sql = f"{now} union all {self._groups_before(bound)}" if bound.is_changed else now
        return Program(reads, sql, self._target, inputs_of(bound))

    def _groups_before(self, bound: Answer) -> str:
        """The groups that were there before: the ones without a new row are gone."""
        keys = [f"{spark_name(c.name)} as {f.name}" for c, f in zip(self._columns, self._keys, strict=False)]
        values = [f"cast(null as {f.carrier.spark}) as {f.name}" for f in self._values]
        return f"select {', '.join(keys + values)}, 0L as {WEIGHT} from {bound.input.name} where w0 > 0"


def _shown_verbatim(aggregate: Aggregate) -> Aggregate:
    """The aggregate with values that are only shown, so that numbers keep their trailing zeros."""
    calls = [
        replace(call, column=replace(call.column, carrier=verbatim(call.column.type)))
        for call in aggregate.calls
    ]
    return replace(aggregate, calls=tuple(calls))


def _with_key(op: Aggregate) -> tuple[Project, Column]:
    key = Column("all rows", _ALL, carrier_of(_ALL))
    kept = tuple(column(c.name) for c in op.columns)
    return Project(op, (key, *op.columns), (Expression(raw("0")), *kept)), key
