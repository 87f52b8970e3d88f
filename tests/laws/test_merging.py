"""The law of merging: a state that takes in the change of each group equals the groups anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Aggregate
from pgtrickle.plan.program import Merge, MergedGroups, Slot
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.plan.targets.groups import Grouped
from pgtrickle.plan.targets.merged import Merged
from tests.fixtures.lanes import examples
from tests.laws.checking import bound_rows, clocked, truths
from tests.laws.ends import change as change_between
from tests.laws.expressions import meaning, meaning_of, parsed
from tests.laws.parts import Names
from tests.laws.rows import Row, naming
from tests.laws.sources import used, worlds
from tests.laws.trees import bare_trees, groups
from tests.laws.zsets import ZSet

State = dict[Row, dict[str, Any]]

_COMPUTE: dict[type[exp.Expr], Callable[[list[Any]], Any]] = {exp.Sum: sum, exp.Min: min, exp.Max: max}


def changes(shape: Merged, sql: str, rows: ZSet) -> State:
    """What Spark returns per group: the select list of the program over the rows, evaluated here."""
    select = parsed(sql.partition(" from (")[0], "spark")
    keys = [meaning_of(item.this) for item in select.expressions[: len(shape._keys)]]
    found: dict[Row, list[dict[str, Any]]] = defaultdict(list)
    named = naming(shape.operator)
    for row, weight in rows.items():
        known = {**named(row), WEIGHT: weight}
        found[tuple(key(known) for key in keys)].append(known)
    if not keys:
        found.setdefault((), [])
    items = select.expressions[len(keys) :]
    return {k: {item.alias: _over(item.this, members) for item in items} for k, members in found.items()}


def _over(node: exp.Expr, rows: list[dict[str, Any]]) -> Any:
    """An expression over a group: its aggregates first, then the rest of it."""
    computed: dict[str, Any] = {}

    def replaced(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, (exp.Sum, exp.Min, exp.Max)):
            return part
        operand = meaning_of(part.this)
        present = [v for v in (operand(row) for row in rows) if v is not None]
        computed[part.sql()] = _COMPUTE[type(part)](present) if present else None
        return exp.column(exp.to_identifier(part.sql(), quoted=True))

    return meaning_of(node.copy().transform(replaced))(computed)


def merged(target: MergedGroups, state: State, change: State, now: State) -> State:
    """The state after the change; `now` are the groups anew, for extrema that went away."""
    result = dict(state)
    for key, part in change.items():
        old = state.get(key, {target.count: 0, **{s.name: _nothing(s) for s in target.slots}})
        new = {target.count: old[target.count] + part[target.count]}
        for slot in target.slots:
            new[slot.name] = _taken_in(slot, old[slot.name], part, now.get(key, {}).get(slot.name))
        result[key] = new
        if target.keys and new[target.count] == 0:
            del result[key]
    return result


def _nothing(slot: Slot) -> int | None:
    return 0 if slot.merge is Merge.ADD else None


def _taken_in(slot: Slot, stored: Any, part: dict[str, Any], anew: Any) -> Any:
    came = part[slot.change.name]
    if slot.merge is Merge.ADD:
        return stored + came
    assert slot.removed is not None
    best = min if slot.merge is Merge.MIN else max
    present = [v for v in (stored, came) if v is not None]
    went = part[slot.removed.name]
    is_gone = went is not None and (stored is None or best(went, stored) == went)
    if is_gone and (came is None or best(came, stored) != came):
        return anew
    return best(present) if present else None


@st.composite
def grouped(draw: st.DrawFn) -> Aggregate:
    """Groups with aggregates that can be merged."""
    names = Names()
    return draw(groups(draw(bare_trees(names, draw(st.integers(0, 3)))), names, has_distinct=False))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), op=grouped())
def test_merging_the_change_equals_recomputation(data, op):
    world = data.draw(worlds(used(op)))
    outputs = tuple((c.name, c.type, column(c.name)) for c in op.columns)
    shape = Merged(Grouped(op, None, outputs))
    changed = world.changed | clocked(op)
    program = shape.program(changed)
    if program is None:
        return
    target = program.target
    assert isinstance(target, MergedGroups)
    was, now = truths(shape.operator, world)
    first, again = (changes(shape, shape.initial().spark_sql, rows) for rows in (was, now))
    state = merged(target, {}, first, {})
    change = changes(shape, program.spark_sql, change_between(bound_rows(shape.operator, world, changed)))
    result = merged(target, state, change, merged(target, {}, again, {}))
    shown = {tuple(_shown(target, key, slots)): 1 for key, slots in result.items()}
    assert shown == dict(truths(op, world)[1])


def _shown(target: MergedGroups, key: Row, slots: dict[str, Any]) -> list[Any]:
    known = {**dict(zip((f.name for f in target.keys), key, strict=True)), **slots}
    return [meaning(output.sql)(known) for output in target.outputs]
