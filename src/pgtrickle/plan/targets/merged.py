"""Groups at the top whose aggregates can be merged: the state takes in the change of each group."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgtrickle.model.carrier import Carrier, Field
from pgtrickle.model.names import quoted
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.aggregates import EXACT
from pgtrickle.plan.expressions import column
from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.lowering.spark_text import carried_value
from pgtrickle.plan.operators import Aggregate, Call, Nothing, Operator, Project
from pgtrickle.plan.passes.bind import bind
from pgtrickle.plan.passes.bind.reads import inputs_of
from pgtrickle.plan.passes.place import place, require_equality
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.passes.prune import prune, prune_as_written
from pgtrickle.plan.passes.spark_sql import End, change_sql
from pgtrickle.plan.program import Merge, MergedGroups, Output, Program, Slot
from pgtrickle.plan.reads import WEIGHT, KeyColumns, Lookup, Read, ReadKind
from pgtrickle.plan.rules.needs import EVERYTHING
from pgtrickle.plan.targets.extrema import extrema_by_index
from pgtrickle.plan.targets.groups import Grouped, group_outputs
from pgtrickle.plan.targets.recomputed import BIGINT_CARRIER, recomputed
from pgtrickle.plan.targets.shape import Shape

COUNT = "count"
RESCANNED = "groups_to_scan_again"


@dataclass(slots=True)
class _Slots:
    """The slots of a state, and the Spark expressions that give their changes."""

    slots: list[Slot] = field(default_factory=list)
    changes: list[tuple[Field, str]] = field(default_factory=list)
    known: dict[str, Slot] = field(default_factory=dict)
    extrema: list[tuple[Slot, Call]] = field(default_factory=list)
    from_nothing: list[tuple[Field, str]] = field(default_factory=list)
    """PostgreSQL's SQL for each change from nothing: over all rows of a group."""

    def sum_of(self, sql: str, pg_type: str, carrier: Carrier, from_nothing: str) -> str:
        """A slot that adds up `sql`; its name."""
        if sql not in self.known:
            change = Field(f"s{len(self.slots)}", carrier)
            self.known[sql] = Slot(change.name, pg_type, Merge.ADD, change)
            self.slots.append(self.known[sql])
            self.changes.append((change, f"coalesce(sum({sql}), 0)"))
            self.from_nothing.append((change, from_nothing))
        return quoted(self.known[sql].name)

    def extremum(self, call: Call, operand: str) -> str:
        """A slot that keeps the least or greatest value; its name."""
        merge, carrier = Merge(call.function), call.column.carrier
        sql = f"{merge.value}({operand})"
        if sql not in self.known:
            change = Field(f"s{len(self.slots)}", carrier)
            removed = Field(f"{change.name}_removed", carrier)
            self.known[sql] = Slot(change.name, call.column.type.text, merge, change, removed)
            self.slots.append(self.known[sql])
            self.extrema.append((self.known[sql], call))
            assert call.argument is not None
            self.from_nothing.append((change, f"{merge.value}({call.argument.sql})"))
            self.from_nothing.append((removed, f"null::{call.column.type.text}"))
            for part, sign in ((change, ">"), (removed, "<")):
                self.changes.append((part, f"{merge.value}(case when {WEIGHT} {sign} 0 then {operand} end)"))
        return quoted(self.known[sql].name)


class Merged(Shape):
    """The state of each group is kept and merged; an extremum that went away is looked for again."""

    def __init__(self, grouped: Grouped) -> None:
        self._aggregate = grouped.aggregate
        self.merged_calls = grouped.aggregate.calls
        self._keys = tuple(
            Field(f"k{number}", key.column.carrier) for number, key in enumerate(grouped.aggregate.keys)
        )
        read = {n for key in grouped.aggregate.keys for n in key.expression.columns}
        read |= {n for call in grouped.aggregate.calls if call.argument for n in call.argument.columns}
        self._used = read
        self.operator = prune(place(grouped.aggregate.child), read)
        require_equality(self.operator)
        self._slots = _Slots()
        finals = {
            key.column.name: quoted(f.name) for key, f in zip(grouped.aggregate.keys, self._keys, strict=True)
        }
        finals |= {call.column.name: self._final(call) for call in grouped.aggregate.calls}
        having, outputs, key = group_outputs(grouped, finals)
        hidden = tuple(
            Output(name, pg_type.text, expression.over(finals.__getitem__))
            for name, pg_type, expression in grouped.hidden
        )
        slots = tuple(self._slots.slots)
        self._target = MergedGroups(
            self._keys, COUNT, slots, having, outputs, key, self._rescan(), grouped.cut, hidden
        )

    @property
    def description(self) -> str:
        first = ", of which the first in order are shown" if self._target.cut else ""
        return f"groups merged with their stored state{first}"

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        bound, reads = bind(self.operator, changed)
        return None if isinstance(bound, Nothing) else self._program(bound, reads, End.CHANGE)

    def initial(self) -> Program:
        bound, reads = bind(self.operator, frozenset(), (EVERYTHING,))
        return self._program(bound, reads, End.NOW)

    def recomputation(self) -> Program:
        keys, rows = self._aggregate.keys, prune_as_written(self._aggregate.child, self._used)
        parts = [
            *zip(self._keys, (key.expression.sql for key in keys), strict=True),
            (Field(COUNT, BIGINT_CARRIER), "count(*)"),
            *self._slots.from_nothing,
        ]
        listed = ", ".join(f"{sql} as {quoted(field.name)}" for field, sql in parts)
        group = ", ".join(str(number + 1) for number in range(len(keys)))
        tail = f" group by {group}" if group else ""
        query = f"select {listed} from ({postgres_sql(rows)}) as t{tail}"
        return recomputed(query, [field for field, _ in parts], self._target)

    def _program(self, bound: Operator, reads: tuple[Read, ...], end: End) -> Program:
        keys = [carried_value(key.expression, key.column, bound.columns) for key in self._aggregate.keys]
        parts = [f"{sql} as {f.name}" for sql, f in zip(keys, self._keys, strict=True)]
        parts.append(f"coalesce(sum({WEIGHT}), 0L) as {COUNT}")
        parts += [
            f"cast({sql} as {f.carrier.spark}) as {spark_name(f.name)}" for f, sql in self._slots.changes
        ]
        group = f" group by {', '.join(keys)}" if keys else ""
        # folded: an extremum that went away and came back within the window has not gone
        sql = f"select {', '.join(parts)} from ({change_sql(self._read_of(bound), end)}){group}"
        return Program(reads, sql, self._target, inputs_of(bound))

    def _read_of(self, bound: Operator) -> Operator:
        """The rows with only the columns that keys and slots are made of."""
        columns = [c for c in bound.columns if c.name in self._used]
        return Project(bound, tuple(columns), tuple(column(c.name) for c in columns))

    def _final(self, call: Call) -> str:
        """The value of a call as SQL over the slots."""
        if call.argument is None:
            return quoted(COUNT)
        assert call.function is not None
        final = EXACT[call.function].final
        assert final is not None
        return final(call, spark_expression(call.argument, self.operator.columns), self._slots)

    def _rescan(self) -> Read | None:
        if not self._slots.extrema:
            return None
        calls = tuple(call for _, call in self._slots.extrema)
        scanned = Aggregate(self._aggregate.child, self._aggregate.keys, calls)
        columns = [f"t.{quoted(c.name)}" for c in scanned.columns]
        key_columns = tuple(columns[: len(self._keys)])
        provider = KeyColumns(RESCANNED, tuple(key.name for key in self._keys))
        lookups = (Lookup(key_columns, self._keys, (provider,), True),) if self._keys else ()
        return Read(
            name="extrema",
            kind=ReadKind.ANSWER,
            source=None,
            # PostgreSQL does not evaluate what nobody reads, such as a subquery with several rows
            query=postgres_sql(prune_as_written(scanned, scanned.names)),
            fields=(*self._keys, *(slot.change for slot, _ in self._slots.extrema)),
            expressions=tuple(columns),
            lookups=lookups,
            by_index=extrema_by_index(scanned),
        )
