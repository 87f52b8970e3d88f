"""Groups at the top that only PostgreSQL can evaluate: the touched ones are evaluated anew."""

from __future__ import annotations

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.carriers import verbatim
from pgtrickle.plan.deltas import versions_of
from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.lowering.postgres import postgres_sql
from pgtrickle.plan.program import WEIGHT, KeyColumns, Lookup, Program, Read, ReadKind, ReplacedGroups
from pgtrickle.plan.pruning import pruned
from pgtrickle.plan.restriction import Binding
from pgtrickle.plan.targets.groups import Grouped, group_outputs
from pgtrickle.plan.targets.shape import Shape
from pgtrickle.plan.tracing import traced

GROUPS = "groups"


class Replaced(Shape):
    """PostgreSQL evaluates the groups that a change touches; they replace the stored ones."""

    def __init__(self, grouped: Grouped) -> None:
        self._aggregate = grouped.aggregate
        keys = grouped.aggregate.keys
        if not keys:
            raise refuse(
                f"{grouped.aggregate.calls[0].expression} without GROUP BY, which depends on all rows,"
            )
        self._key_columns = tuple(key.expression.column for key in keys if key.expression.column is not None)
        for group_key in keys:
            if not group_key.column.type.deterministic:
                raise refuse(f"grouping by {group_key.column.name}, whose collation is not deterministic,")
        if len(self._key_columns) != len(keys):
            raise refuse("grouping by an expression over several sources with such aggregates")
        # a change of any value that an aggregate reads touches the group
        read = {name for call in grouped.aggregate.calls for name in call.expression.columns}
        self.operator = pruned(grouped.aggregate.child, {*self._key_columns, *read})
        self._keys = tuple(Field(f"k{number}", key.column.carrier) for number, key in enumerate(keys))
        self._values = tuple(
            Field(f"v{number}", verbatim(call.column.type))
            for number, call in enumerate(grouped.aggregate.calls)
        )
        fields = (*self._keys, *self._values)
        finals = {c.name: quoted(f.name) for c, f in zip(grouped.aggregate.columns, fields, strict=True)}
        having, outputs, key = group_outputs(grouped, finals)
        self._target = ReplacedGroups(self._keys, self._values, having, outputs, key)

    @property
    def description(self) -> str:
        return "touched groups evaluated anew by PostgreSQL"

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        delta = versions_of(self.operator, changed).delta
        if delta is None:
            return None
        binding = Binding()
        bound = binding.bound(delta)
        providers = traced(bound, self._key_columns)
        if not providers:
            raise refuse("such aggregates over keys that only Spark knows")
        reads = _reachable(tuple(binding.reads), providers)
        groups = self._groups(providers)
        named = [self._named(provider) for provider in providers]
        sql = " union all ".join([self._now(), *named])
        return Program((*reads, groups), sql, self._target)

    def initial(self) -> Program:
        return Program((self._groups(()),), self._now(), self._target)

    def _groups(self, providers: tuple[KeyColumns, ...]) -> Read:
        columns = tuple(f"t.{quoted(c.name)}" for c in self._aggregate.columns)
        lookup = Lookup(columns[: len(self._keys)], self._keys, providers, True)
        return Read(
            name=GROUPS,
            kind=ReadKind.GROUPS,
            source=None,
            query=postgres_sql(self._aggregate),
            fields=(*self._keys, *self._values),
            expressions=columns,
            lookups=(lookup,) if providers else (),
        )

    def _now(self) -> str:
        fields = ", ".join(f.name for f in (*self._keys, *self._values))
        return f"select {fields}, 1L as {WEIGHT} from {GROUPS}"

    def _named(self, provider: KeyColumns) -> str:
        keys = [f"{spark_name(own)} as {f.name}" for own, f in zip(provider.fields, self._keys, strict=True)]
        values = [f"cast(null as {f.carrier.spark}) as {f.name}" for f in self._values]
        return f"select distinct {', '.join(keys + values)}, 0L as {WEIGHT} from {provider.read}"


def _reachable(reads: tuple[Read, ...], providers: tuple[KeyColumns, ...]) -> tuple[Read, ...]:
    """Only the reads that the providers, or the lookups of those, take their keys from."""
    wanted = {provider.read for provider in providers}
    for read in reversed(reads):
        if read.name in wanted:
            wanted |= {provider.read for lookup in read.lookups for provider in lookup.providers}
    return tuple(read for read in reads if read.name in wanted)
