"""The laws of restriction: keys are held by what they are traced to, and lookups find little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Aggregate, GroupKey, Join, Mark, Nothing, Operator, OuterJoin, UnionAll
from pgtrickle.plan.passes.bind import Binding
from pgtrickle.plan.properties import is_padded, reads_holding
from pgtrickle.plan.reads import Read, ReadKind
from tests.fixtures.lanes import examples
from tests.laws.checking import GIVEN, truths
from tests.laws.ends import both_ends
from tests.laws.needs import needs
from tests.laws.parts import Names, project, result, scan
from tests.laws.reading import Reader, remembered
from tests.laws.rows import positions
from tests.laws.sources import BOOLEAN, SOURCES, source, supersets, used, worlds
from tests.laws.trees import trees
from tests.laws.zsets import World

law = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@law
@given(data=st.data(), op=trees().filter(lambda op: bool(op.columns)), more=supersets)
def test_traced_reads_hold_every_key_that_the_rows_have(data, op, more):
    world, needed = data.draw(worlds(used(op))), data.draw(needs(op))
    truths(op, world)
    names = data.draw(st.lists(st.sampled_from([c.name for c in op.columns]), min_size=1, max_size=2))
    binding = Binding(world.changed | more)
    with remembered() as queries:
        bound = binding.bind(op, needed.wants)
    providers = reads_holding(bound, tuple(names))
    if providers is None:
        return
    tables = Reader(world, queries, tables={GIVEN: needed.table}).read_all(tuple(binding._reads.all))
    places = positions(op, names)
    found = {tuple(row[i] for i in places) for row, weights in both_ends(bound, tables) if weights != (0, 0)}
    held = {key for p in providers for key in tables[p.read].keys(p.fields)}
    for key in found - held:
        assert any(v is None and is_padded(op, name) for v, name in zip(key, names, strict=True))


@law
@given(op=trees())
def test_nothing_is_read_where_nothing_has_changed(op):
    bound, reads = Binding(frozenset()).program(op)
    assert isinstance(bound, Nothing)
    assert reads == ()


def test_a_key_reaches_every_arm_of_a_union():
    names = Names()
    left, one, other = (scan(table, names) for table in SOURCES[:3])
    arms = [project(arm, [column(f"{arm.alias}.b")], names) for arm in (one, other)]
    op = Join(left, UnionAll(tuple(arms)), ((f"{left.alias}.a", arms[0].columns[0].name),))
    _, reads = Binding(frozenset({SOURCES[0].relation})).program(op)
    assert [(r.name, [lookup.columns for lookup in r.lookups]) for r in reads] == [
        (f"change_of_{left.alias}", []),
        (f"rows_of_{one.alias}", [('t."b"',)]),
        (f"rows_of_{other.alias}", [('t."b"',)]),
    ]


LETTERS = "abcdefghijklm"


def table(number: int) -> Source:
    """A table with an index on each column."""
    return source(number, LETTERS, indexes=tuple((letter,) for letter in LETTERS))


Combined = Callable[[Operator, Operator, tuple[str, str], Names], Operator]

COMBINED: dict[str, Combined] = {
    "joins": lambda left, right, pair, names: Join(left, right, (pair,)),
    "left joins": lambda left, right, pair, names: OuterJoin(left, right, (pair,), None),
    "marks": lambda left, right, pair, names: Mark(left, right, (pair,), None, names.column("m", BOOLEAN)),
}


def chain(length: int, combined: Combined = COMBINED["joins"]) -> Operator:
    """Each table found by the one before it."""
    return _combined(length, combined, lambda number: (number - 1, "b"))


def star(length: int, combined: Combined = COMBINED["joins"]) -> Operator:
    """Each table found by another column of the first."""
    return _combined(length, combined, lambda number: (0, LETTERS[number]))


def _combined(length: int, combined: Combined, by: Callable[[int], tuple[int, str]]) -> Operator:
    names = Names()
    scans = [scan(table(number + 1), names) for number in range(length)]
    op: Operator = scans[0]
    for number in range(1, length):
        other, letter = by(number)
        pair = (f"{scans[other].alias}.{letter}", f"{scans[number].alias}.a")
        op = combined(op, scans[number], pair, names)
    return op


def reads_of(op: Operator, changed: set[int] | None = None) -> tuple[Read, ...]:
    """What is read when these tables have changed, or all."""
    relations = {s.relation for s in used(op)} if changed is None else {RelationId(n) for n in changed}
    return Binding(frozenset(relations)).program(op)[1]


def without_lookup(reads: tuple[Read, ...]) -> list[str]:
    return [read.name for read in reads if read.kind is ReadKind.ROWS and not read.lookups]


def grouped(op: Operator, name: str) -> Aggregate:
    return Aggregate(op, (GroupKey(result(op, column(name), "g"), column(name)),), ())


@pytest.mark.parametrize("shape", [chain, star])
@pytest.mark.parametrize("changed", [{1}, {2}, {4}, {1, 3}, {1, 2, 3, 4}])
def test_joined_tables_are_never_read_whole(shape, changed):
    op = shape(4)
    assert without_lookup(reads_of(op, changed)) == []
    assert without_lookup(reads_of(grouped(op, op.columns[1].name), changed)) == []


@pytest.mark.parametrize("length", range(3, 13))
@pytest.mark.parametrize("shape", [chain, star])
def test_the_number_of_reads_grows_with_the_number_of_joined_tables(shape, length):
    op = shape(length)
    assert len(reads_of(op, {1})) == length
    assert len(reads_of(op)) <= 3 * length
    assert len(reads_of(grouped(op, op.columns[1].name))) <= 4 * length


@pytest.mark.parametrize(("shape", "kind"), [(chain, "left joins"), (star, "left joins"), (star, "marks")])
def test_the_number_of_reads_grows_with_the_number_of_outer_joins_and_marks(shape, kind):
    for length in range(3, 13):
        assert len(reads_of(shape(length, COMBINED[kind]))) <= 3 * length


@pytest.mark.parametrize("wrapped", [lambda op: op, lambda op: grouped(op, op.columns[1].name)])
def test_sixty_joins_are_bound_in_two_seconds(wrapped):
    op = wrapped(chain(61))
    started = process_time()
    reads_of(op)
    assert process_time() - started < 2


@pytest.mark.parametrize("shape", [chain, star])
def test_a_small_change_reads_few_rows_of_large_tables(shape):
    op = shape(4)
    rows = [(n, n, *([n] * (len(LETTERS) - 2))) for n in range(200)]
    old = {s.relation: Counter(rows) for s in used(op)}
    for changed in used(op):
        new = old | {changed.relation: old[changed.relation] + Counter([(7,) * len(LETTERS)])}
        world = World(old, new)
        _, reads = Binding(world.changed).program(op)
        tables = Reader(world, {}).read_all(reads)
        assert {len(found.found) for found in tables.values()} == {1}
