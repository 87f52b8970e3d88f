"""The law of restriction: reading only what the keys of the change ask for changes no answer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrickle.plan.deltas import versions_of
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Aggregate, Distinct, GroupKey, Join, Operator, UnionAll
from pgtrickle.plan.program import ReadKind
from pgtrickle.plan.restriction import Binding
from pgtrickle.plan.tracing import traced
from tests.laws import trees
from tests.laws.reading import provided, read_all
from tests.laws.trees import SOURCES, Names
from tests.laws.zsets import chosen, evaluated, folded

law = settings(max_examples=200, deadline=None)
supersets = st.frozensets(st.sampled_from([s.relation for s in SOURCES]))


@law
@given(op=trees.trees(depth=3), world=trees.worlds(), more=supersets)
def test_a_restriction_never_changes_the_answer(op, world, more):
    delta = versions_of(op, world.changed | more).delta
    if delta is None:
        return
    binding = Binding()
    bound = binding.bound(delta)
    restricted = read_all(tuple(binding.reads), world)
    assert folded(evaluated(bound, restricted)) == folded(evaluated(delta, world))


@law
@given(op=trees.trees(depth=3), world=trees.worlds())
def test_the_first_load_reads_the_query_itself(op, world):
    binding = Binding()
    bound = binding.bound(op)
    assert folded(evaluated(bound, read_all(tuple(binding.reads), world))) == folded(evaluated(op, world))


@law
@given(data=st.data(), op=trees.trees(depth=3), world=trees.worlds())
def test_traced_reads_hold_every_key_that_the_rows_have(data, op, world):
    delta = versions_of(op, world.changed).delta
    if delta is None or not op.columns:
        return
    columns = data.draw(st.lists(st.sampled_from([c.name for c in delta.columns]), min_size=1, max_size=2))
    binding = Binding()
    bound = binding.bound(delta)
    providers = traced(bound, tuple(columns))
    if providers:
        restricted = read_all(tuple(binding.reads), world)
        found = set(chosen(bound, evaluated(bound, restricted), columns))
        assert found <= provided(providers, tuple(binding.reads), restricted)


@law
@given(op=trees.trees(depth=3), more=supersets)
def test_what_can_be_traced_when_all_has_changed_can_be_when_less_has(op, more):
    """The compiler asks once, for all sources; a smaller window must not surprise it."""
    everything = frozenset(s.relation for s in SOURCES)
    for shown in op.columns:
        whole = versions_of(op, everything).delta
        part = versions_of(op, more).delta
        if part is not None and whole is not None and traced(Binding().bound(whole), (shown.name,)):
            assert traced(Binding().bound(part), (shown.name,))


@st.composite
def looked_up(draw: st.DrawFn) -> Operator:
    """A scan joined by one equality with a result of another scan."""
    names = Names()
    left, below = draw(trees.scans(names, SOURCES)), draw(trees.scans(names, SOURCES))
    right: Operator = draw(
        st.one_of(
            st.lists(trees.scalars(below), min_size=1, max_size=2).map(
                lambda e: trees.project(below, e, names)
            ),
            trees.groups(below, names).filter(lambda grouped: bool(grouped.keys)),
            trees.unions(below, draw(trees.scans(names, SOURCES)), names),
            st.just(Distinct(below)),
        )
    )
    keys = [c.name for c in right.columns if c.type is not trees.BOOLEAN]
    pair = (draw(st.sampled_from(sorted(left.names))), draw(st.sampled_from(keys)))
    return draw(st.sampled_from([Join(left, right, (pair,)), Join(right, left, ((pair[1], pair[0]),))]))


@law
@given(op=looked_up(), world=trees.worlds(), more=supersets)
def test_a_lookup_through_any_operator_never_changes_the_answer(op, world, more):
    delta = versions_of(op, world.changed | more).delta
    if delta is not None:
        binding = Binding()
        bound = binding.bound(delta)
        restricted = read_all(tuple(binding.reads), world)
        assert folded(evaluated(bound, restricted)) == folded(evaluated(delta, world))


def test_a_key_reaches_every_arm_of_a_union():
    names = Names()
    left, one, other = (trees.scan(table, names) for table in SOURCES)
    arms = [trees.project(arm, [column(f"{arm.alias}.b")], names) for arm in (one, other)]
    op = Join(left, UnionAll(tuple(arms)), ((f"{left.alias}.a", arms[0].columns[0].name),))
    binding = Binding()
    delta = versions_of(op, frozenset({SOURCES[0].relation})).delta
    assert delta is not None
    binding.bound(delta)
    assert [(r.name, [lookup.columns for lookup in r.lookups]) for r in binding.reads] == [
        (f"change_of_{left.alias}", []),
        (f"rows_of_{one.alias}", [('t."b"',)]),
        (f"rows_of_{other.alias}", [('t."b"',)]),
    ]


@st.composite
def chains(draw: st.DrawFn) -> Operator:
    """Scans joined one after the other, each by an equality with one of those before."""
    names = Names()
    op: Operator = draw(trees.scans(names, SOURCES))
    for _ in range(draw(st.integers(1, 3))):
        following = draw(trees.scans(names, SOURCES))
        pair = (draw(st.sampled_from(sorted(op.names))), draw(st.sampled_from(sorted(following.names))))
        op = Join(op, following, (pair,), None)
    return op


@law
@given(op=chains(), more=supersets)
def test_a_chain_of_equalities_never_reads_a_whole_table(op, more):
    delta = versions_of(op, more).delta
    if delta is not None:
        binding = Binding()
        binding.bound(delta)
        assert [r.name for r in binding.reads if r.kind is ReadKind.ROWS and not r.lookups] == []


@law
@given(data=st.data(), op=chains(), more=supersets)
def test_groups_over_a_chain_never_read_a_whole_table(data, op, more):
    key = column(data.draw(st.sampled_from(sorted(op.names))))
    grouped = Aggregate(op, (GroupKey(trees.result(op, key, "g"), key),), ())
    delta = versions_of(grouped, more).delta
    if delta is not None:
        binding = Binding()
        binding.bound(delta)
        assert [r.name for r in binding.reads if r.kind is ReadKind.ROWS and not r.lookups] == []
