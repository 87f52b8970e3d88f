"""Propagates keys through a region of inner joins, from each table to its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pgtrickle.plan.operators import Operator, Scan
from pgtrickle.plan.passes.bind.region import Edge, has_index, region_of
from pgtrickle.plan.rules.needs import Binder, Need, Needs, unique_needs


class Propagation:
    """One propagation: the keys that a leaf sends to a neighbour do not depend on that neighbour."""

    def __init__(self, binder: Binder, op: Operator, needs: Needs) -> None:
        self._binder = binder
        self._region = region_of(op)
        self._known: dict[tuple[int, int], Needs] = {}
        self._entries: list[list[Need]] = [[] for _ in self._region.leaves]
        self._direct: list[list[Need]] = [[] for _ in self._region.leaves]
        self._reduced: dict[int, tuple[int, Needs]] = dict(self._reduced_groups())
        for need in needs:
            self._enter(need)

    def bind_leaves(self) -> list[Operator]:
        """The leaves, bound to everything that the others need of them."""
        numbers = range(len(self._region.leaves))
        asked = [
            (
                *self._entries[n],
                *self._direct[n],
                *(need for e in self._region.at(n) for need in self._sent(e, e.other(n))),
            )
            for n in numbers
        ]
        return [
            self._binder.bind(leaf, unique_needs(needs))
            for leaf, needs in zip(self._region.leaves, asked, strict=True)
        ]

    def _reduced_groups(self) -> Iterator[tuple[int, tuple[int, Needs]]]:
        """The leaves whose changed groups a filtered neighbour is asked for, and what it is asked."""
        for number, leaf in enumerate(self._region.leaves):
            for edge in self._region.at(number):
                other = self._region.leaves[edge.other(number)]
                if not isinstance(other, Scan) or other.condition is None:
                    continue
                if met := self._binder.keys_of_groups(leaf, edge.pairs_from(number)):
                    yield number, (edge.other(number), met)
                    break

    def _enter(self, need: Need) -> None:
        """Let a need in: at every leaf if all have its columns, else where it serves best."""
        own = [need.over(partial(self._region.place, n)) for n in range(len(self._region.leaves))]
        if all(len(one.columns) == len(need.columns) for one in own):
            for number, one in enumerate(own):
                self._direct[number].append(one)
            return
        best = max(range(len(own)), key=lambda n: self._rank(n, own[n]))
        self._entries[best].append(own[best])

    def _rank(self, leaf: int, need: Need) -> tuple[bool, bool, int]:
        indexed = any(has_index(self._region.leaves[leaf], name) for name in need.columns)
        return bool(need.columns), indexed, len(need.columns)

    def _sent(self, edge: Edge, leaf: int) -> Needs:
        """What the rows of a leaf ask of its neighbour on this edge."""
        there = edge.other(leaf)
        if (leaf, there) not in self._known:
            asked: list[Need] = list(self._entries[leaf])
            if there in self._reduced and self._reduced[there][0] == leaf:
                asked += self._reduced[there][1]
            for other in self._region.at(leaf):
                if other is not edge:
                    asked += self._sent(other, other.other(leaf))
            self._known[leaf, there] = self._binder.keys(
                self._region.leaves[leaf], unique_needs(asked), edge.pairs_from(leaf), is_null_safe=False
            )
        return self._known[leaf, there]
