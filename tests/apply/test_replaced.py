"""Groups that PostgreSQL evaluated anew stand in the place of the stored ones."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrickle.apply import Applied
from pgtrickle.model.carrier import STRING, Carrier, Field
from pgtrickle.plan.program import Output, ReplacedGroups
from tests.apply.conftest import Streams
from tests.apply.stream import Row, create_stream, field
from tests.fixtures.lanes import examples

# 1.0 and 1.00 are one group, and Spark does not know it; bits cannot be hashed
AMOUNT = Field("amount", Carrier("numeric", STRING, "({})::text", "({})::numeric", False, False))
BITS = field("bits", "bit(4)")
GROUPS = ReplacedGroups(
    keys=(AMOUNT, BITS),
    values=(field("names", "json"), field("n", "bigint")),
    having='"n" <> 2',
    outputs=(
        Output("amount", "numeric", 'trim_scale("amount")'),
        Output("bits", "bit(4)", '"bits"'),
        Output("n", "bigint", '"n"'),
        Output("names", "json", '"names"'),
    ),
    key=("amount", "bits"),
)
WHOLE = ReplacedGroups((), GROUPS.values, None, GROUPS.outputs[2:], ())

keys = st.tuples(st.sampled_from(["1", "2.5", None]), st.sampled_from(["1010", None]))
contents = st.dictionaries(keys, st.tuples(st.sampled_from(["{}", "[1]", None]), st.integers(1, 3)))
spellings = st.sampled_from(["", "0"])
law = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def final(groups: dict[Row, Row]) -> Counter[str]:
    rows = ((*key, n, names) for key, (names, n) in groups.items() if n != 2)
    return Counter(f"({','.join('' if v is None else str(v) for v in row)})" for row in rows)


def spelled(key: Row, zeros: str) -> Row:
    """The same key, with other zeros at its end."""
    amount, bits = key
    return (amount and (amount if "." in amount else amount + ".") + "0" + zeros, bits)


@law
@given(history=st.lists(contents, min_size=2, max_size=4), idle=st.lists(keys, max_size=2), zeros=spellings)
def test_named_groups_are_replaced(streams: Streams, history, idle, zeros):
    with streams(GROUPS) as stream:
        before = history[0]
        stream.replace([(*key, *values, 1) for key, values in before.items()])
        assert stream.rows() == final(before)
        for after in history[1:]:
            places = stream.versions()
            named = [key for key in {*before, *after} if before.get(key) != after.get(key)]
            named += idle
            names = [(*spelled(key, z), None, None, 0) for key in named for z in ("", zeros)]
            fresh = [(*key, *after[key], 1) for key in {*named} & {*after}]
            stream.change([*names, *fresh])
            assert stream.rows() == final(after)
            kept = final(before) & final(after)
            assert all(places[row] == stream.versions()[row] for row in kept)
            before = after


def test_a_replaced_group_is_one_update(connection):
    stream = create_stream(connection, GROUPS)
    stream.replace([("1", "1010", "{}", 1, 1), ("2", "1010", "{}", 1, 1)])
    change = [("1.00", "1010", None, None, 0), ("1.0", "1010", "[]", 3, 1)]
    assert stream.change(change) == Applied(1, 1)
    assert stream.rows() == Counter(["(1,1010,3,[])", "(2,1010,1,{})"])


def test_a_group_without_keys_is_replaced(connection):
    stream = create_stream(connection, WHOLE)
    assert stream.replace([("{}", 1, 1)]) == Applied(1, 0)
    assert stream.change([(None, None, 0), (None, None, 0), ("[]", 5, 1)]) == Applied(1, 1)
    assert stream.rows() == Counter(["(5,[])"])
    assert stream.change([(None, None, 0)]) == Applied(0, 1)
