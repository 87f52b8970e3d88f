"""Plans survive being written and read; nothing else is ever accepted."""

from __future__ import annotations

import hashlib
import json
import pickle
import zlib
from dataclasses import dataclass
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.refresh.caching.codec import Unreadable, decode, encode


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str
    size: int | None
    colour: Colour


@dataclass(frozen=True, slots=True)
class Twig:
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    is_green: bool
    pair: tuple[str, int]
    top: Leaf | Twig
    below: Leaf | None
    all: tuple[Twig, ...]


@dataclass(frozen=True, slots=True)
class Intruder:
    name: str


leaves = st.builds(Leaf, st.text(), st.none() | st.integers(), st.sampled_from(Colour))
twigs = st.builds(Twig, st.lists(leaves, max_size=4).map(tuple))
trees = st.builds(
    Tree,
    st.booleans(),
    st.tuples(st.text(), st.integers()),
    leaves | twigs,
    st.none() | leaves,
    st.lists(twigs, max_size=4).map(tuple),
)
ONE = Tree(True, ("a", 1), Leaf("b", None, Colour.RED), None, (Twig((Leaf("c", 2, Colour.BLUE),)),))
KEY = b"key"


@given(tree=trees)
def test_what_was_written_is_read(tree):
    assert decode(Tree, encode(tree, KEY), KEY) == tree


@given(position=st.integers(min_value=0), flipped=st.integers(min_value=1, max_value=255))
def test_any_changed_byte_is_noticed(position, flipped):
    data = bytearray(encode(ONE, KEY))
    data[position % len(data)] ^= flipped
    with pytest.raises(Unreadable):
        decode(Tree, bytes(data), KEY)


def test_every_torn_end_is_noticed():
    data = encode(ONE, KEY)
    for length in range(len(data)):
        with pytest.raises(Unreadable):
            decode(Tree, data[:length], KEY)


def test_another_key_does_not_open_it():
    with pytest.raises(Unreadable):
        decode(Tree, encode(ONE, KEY), b"other")


def test_a_pickle_is_never_loaded():
    for data in (pickle.dumps(ONE), sealed(pickle.dumps(ONE), is_packed=False)):
        with pytest.raises(Unreadable):
            decode(Tree, data, KEY)


@pytest.mark.parametrize(
    "rows",
    [
        [["Intruder", "x"]],
        [["Leaf", "b", None, "red"]],
        [["Leaf", 1, None, "red"], ["Tree", True, ["a", 1], 0, None, []]],
        [["Leaf", "b", True, "red"], ["Tree", True, ["a", 1], 0, None, []]],
        [["Leaf", "b", None, "green"], ["Tree", True, ["a", 1], 0, None, []]],
        [["Leaf", "b", None, "red"], ["Tree", 1, ["a", 1], 0, None, []]],
        [["Leaf", "b", None, "red"], ["Tree", True, ["a"], 0, None, []]],
        [["Leaf", "b", None, "red"], ["Tree", True, "a1", 0, None, []]],
        [["Leaf", "b", None, "red"], ["Tree", True, ["a", 1], 1, None, []]],
        [["Leaf", "b", None, "red"], ["Tree", True, ["a", 1], -1, None, []]],
        [["Leaf", "b", None, "red"], ["Tree", True, ["a", 1], 0, None, [0]]],
        [["Leaf", "b", None, "red"], ["Tree", True, ["a", 1], 0, None]],
        [["Leaf", "b", None, "red"], ["Tree", True, ["a", 1], 0, None, [], 1]],
    ],
)
def test_a_well_sealed_value_of_wrong_types_is_refused(rows):
    with pytest.raises(Unreadable):
        decode(Tree, sealed(json.dumps([rows, len(rows) - 1]).encode()), KEY)


def test_the_wrong_rows_above_differ_from_a_right_one_only_where_they_are_wrong():
    rows = [["Leaf", "b", None, "red"], ["Tree", True, ["a", 1], 0, None, []]]
    read = decode(Tree, sealed(json.dumps([rows, 1]).encode()), KEY)
    assert read == Tree(True, ("a", 1), Leaf("b", None, Colour.RED), None, ())


def test_what_unpacks_to_too_much_is_refused():
    with pytest.raises(Unreadable):
        decode(Tree, sealed(b"[" * (65 << 20)), KEY)


def test_a_value_that_is_not_plain_cannot_be_written():
    with pytest.raises(TypeError, match="float"):
        encode(Leaf("a", 1.5, Colour.RED), KEY)  # type: ignore[arg-type]


def sealed(content: bytes, *, is_packed: bool = True) -> bytes:
    """Whatever content, under a digest that fits it."""
    body = zlib.compress(content) if is_packed else content
    mark = encode(ONE, KEY).split(b"\n", 1)[0] + b"\n"
    return mark + hashlib.sha256(len(KEY).to_bytes(8, "big") + KEY + body).digest() + body
