"""Groups that merge their state with the change equal groups that are computed again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrickle.apply import Applied
from pgtrickle.model.errors import Diverged
from pgtrickle.plan.program import Merge, MergedGroups, Output, Slot
from pgtrickle.plan.reads import Read, ReadKind
from tests.apply.conftest import Streams
from tests.apply.stream import Row, Stream, create_stream, field
from tests.fixtures.lanes import examples

TOTAL = 'case when "filled" > 0 then "total" end'
SLOTS = (
    Slot("total", "numeric", Merge.ADD, field("d total", "numeric")),
    Slot("filled", "bigint", Merge.ADD, field("d_filled", "bigint")),
    Slot("low", "integer", Merge.MIN, field("low_came", "integer"), field("low_went", "integer")),
    Slot("high", "integer", Merge.MAX, field("high_came", "integer"), field("high_went", "integer")),
)
VALUES = (
    Output("n", "bigint", '"count"'),
    Output("total", "numeric", TOTAL),
    Output("low", "integer", '"low"'),
    Output("high", "integer", '"high"'),
)
G = field("g", "text")
EXTREMA = (field("low", "integer"), field("high", "integer"))
GROUPS = MergedGroups(
    keys=(G,),
    count="count",
    slots=SLOTS,
    having='"count" >= 2',
    outputs=(Output("g", "text", '"g"'), *VALUES),
    key=("g",),
    rescan=Read("extrema", ReadKind.ROWS, None, None, (G, *EXTREMA), ()),
)
ONE_GROUP = MergedGroups(
    (), "count", SLOTS, None, VALUES, (), Read("extrema", ReadKind.ROWS, None, None, EXTREMA, ())
)

Bag = Counter[Row]
bags = st.lists(
    st.tuples(st.sampled_from([None, "", "a", "b'"]), st.sampled_from([None, 1, 2, 3])), max_size=7
).map(Counter)
law = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def extrema(values: list[int | None]) -> Row:
    found = [value for value in values if value is not None]
    return (min(found), max(found)) if found else (None, None)


def final(target: MergedGroups, bag: Bag) -> Counter[str]:
    """The groups of a bag, computed from all of it, as PostgreSQL would print them."""
    keys = {g for g, _ in bag.elements()} if target.keys else {()}
    found = []
    for key in keys:
        values = [v for g, v in bag.elements() if key in ((), g)]
        filled = [v for v in values if v is not None]
        row = [len(values), sum(filled) if filled else None, *extrema(values)]
        if target.keys and len(values) < 2:
            continue
        group = [] if key == () else ['""' if key == "" else key]
        found.append([*group, *row])
    return Counter(f"({','.join('' if v is None else str(v) for v in row)})" for row in found)


def change(target: MergedGroups, before: Bag, after: Bag, noise: Bag) -> list[Row]:
    """What Spark returns; the rows of `noise` come and go within the window, not folded away."""
    came, went = list(((after - before) + noise).elements()), list(((before - after) + noise).elements())
    keys = {g for g, _ in came + went} if target.keys else {()}
    rows = []
    for key in keys:
        new = [v for g, v in came if key in ((), g)]
        old = [v for g, v in went if key in ((), g)]
        total = sum(v or 0 for v in new) - sum(v or 0 for v in old)
        filled = sum(v is not None for v in new) - sum(v is not None for v in old)
        (low_came, high_came), (low_went, high_went) = extrema(new), extrema(old)
        group = () if key == () else (key,)
        row = (len(new) - len(old), str(total), filled, low_came, low_went, high_came, high_went)
        rows.append((*group, *row))
    return rows


def scanned(target: MergedGroups, asked: pa.Table | None, bag: Bag) -> pa.Table | None:
    """The extrema of the groups that were asked for."""
    if asked is None:
        return None
    keys = asked.column("g").to_pylist() if target.keys else [()]
    found = [extrema([v for g, v in bag.elements() if key in ((), g)]) for key in keys]
    table = pa.table(
        {
            "low": pa.array([low for low, _ in found], pa.int32()),
            "high": pa.array([high for _, high in found], pa.int32()),
        }
    )
    return table.append_column("g", pa.array(keys, pa.string())) if target.keys else table


def follow(stream: Stream, before: Bag, after: Bag, noise: Bag | None = None) -> Applied:
    assert isinstance(stream.target, MergedGroups)
    rows = change(stream.target, before, after, noise or Counter())
    rescanned = scanned(stream.target, stream.to_rescan(rows), after)
    return stream.change(rows, rescanned)


def as_first_load(target: MergedGroups, bag: Bag) -> list[Row]:
    return change(target, Counter(), bag, Counter())


@pytest.mark.parametrize("target", [GROUPS, ONE_GROUP], ids=["groups", "one group"])
@law
@given(history=st.lists(bags, min_size=2, max_size=5), noise=bags)
def test_merging_equals_computing_again(streams: Streams, target, history, noise):
    with streams(target) as stream:
        before = history[0]
        stream.replace(as_first_load(target, before))
        assert stream.rows() == final(target, before)
        for after in history[1:]:
            places = stream.versions()
            follow(stream, before, after, noise)
            assert stream.rows() == final(target, after)
            kept = final(target, before) & final(target, after)
            assert all(places[row] == stream.versions()[row] for row in kept)
            before = after


@pytest.mark.parametrize("target", [GROUPS, ONE_GROUP], ids=["groups", "one group"])
@law
@given(history=st.lists(bags, min_size=2, max_size=4))
def test_a_first_load_over_old_rows_writes_the_difference(streams: Streams, target, history):
    with streams(target) as stream:
        for bag in history:
            places, before = stream.versions(), stream.rows()
            stream.replace(as_first_load(target, bag))
            assert stream.rows() == final(target, bag)
            assert all(places[row] == stream.versions()[row] for row in before & final(target, bag))


def test_one_of_two_equal_extrema_leaves_without_a_trace_of_the_other(connection):
    stream = create_stream(connection, GROUPS)
    before = Counter([("a", 1), ("a", 1), ("a", 5), ("b", 7), ("b", 8)])
    stream.replace(as_first_load(GROUPS, before))
    after = before - Counter([("a", 1)])
    asked = stream.to_rescan(change(GROUPS, before, after, Counter()))
    assert asked is not None
    assert asked.to_pylist() == [{"g": "a"}]
    assert follow(stream, before, after) == Applied(1, 1)
    assert stream.rows() == final(GROUPS, after)


def test_a_better_extremum_needs_no_scan(connection):
    stream = create_stream(connection, GROUPS)
    before = Counter([("a", 2), ("a", 5)])
    stream.replace(as_first_load(GROUPS, before))
    assert stream.to_rescan(change(GROUPS, before, Counter([("a", 1), ("a", 5)]), Counter())) is None


def test_an_extremum_that_was_not_scanned_again_is_a_divergence(connection):
    stream = create_stream(connection, GROUPS)
    before = Counter([("a", 2), ("a", 5), ("a", 6)])
    stream.replace(as_first_load(GROUPS, before))
    with pytest.raises(Diverged, match="unknown extremum in group"):
        stream.change(change(GROUPS, before, Counter([("a", 5), ("a", 6)]), Counter()))


def test_a_group_vanishes_with_its_state_and_revives(connection):
    stream = create_stream(connection, GROUPS)
    full: Bag = Counter([(None, 1), (None, 2)])
    empty: Bag = Counter()
    stream.replace(as_first_load(GROUPS, full))
    assert follow(stream, full, empty) == Applied(0, 1)
    assert stream.run("table pgtrickle_state.state_7") == []
    assert follow(stream, empty, full) == Applied(1, 0)
    assert stream.rows() == final(GROUPS, full)


def test_having_is_crossed_and_crossed_again(connection):
    stream = create_stream(connection, GROUPS)
    below, above = Counter([("a", 1)]), Counter([("a", 1), ("a", 2)])
    stream.replace(as_first_load(GROUPS, below))
    assert follow(stream, below, above) == Applied(1, 0)
    assert follow(stream, above, below) == Applied(0, 1)
    assert follow(stream, below, above) == Applied(1, 0)


def test_more_leaves_than_there_was_is_a_divergence(connection):
    stream = create_stream(connection, GROUPS)
    with pytest.raises(Diverged, match=r"a count of -1 in group \(a\)"):
        stream.change([("a", -1, "-1", -1, None, None, None, None)])


def test_one_group_over_nothing_is_a_row(connection):
    stream = create_stream(connection, ONE_GROUP)
    stream.replace([])
    assert stream.rows() == Counter(["(0,,,)"])
    assert stream.change([]) == Applied(0, 0)


def test_no_groups_over_nothing_are_no_rows(connection):
    stream = create_stream(connection, replace(GROUPS, having=None))
    assert stream.replace([]) == Applied(0, 0)
    assert stream.rows() == Counter()


def test_an_unchanged_final_row_is_not_written(connection):
    stream = create_stream(connection, replace(GROUPS, outputs=GROUPS.outputs[:1]))
    stream.replace(as_first_load(GROUPS, Counter([("a", 1), ("a", 2)])))
    assert stream.change([("a", 1, "3", 1, 3, None, 3, None)]) == Applied(0, 0)


def test_an_extremum_of_text_is_compared_under_its_own_collation(connection):
    pg_type = 'text collate "C"'
    came, went = field("came", "text"), field("went", "text")
    target = MergedGroups(
        keys=(G,),
        count="count",
        slots=(Slot("low", pg_type, Merge.MIN, came, went),),
        having=None,
        outputs=(Output("g", "text", '"g"'), Output("low", "text", '"low"')),
        key=("g",),
        rescan=Read("extrema", ReadKind.ROWS, None, None, (G, field("low", "text")), ()),
    )
    stream = create_stream(connection, target)
    stream.replace([("a", 1, "a", None)])
    stream.change([("a", 1, "B", None)])
    assert stream.rows() == Counter(["(a,B)"])
