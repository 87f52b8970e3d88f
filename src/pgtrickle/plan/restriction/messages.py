"""Keys that travel through a region of inner joins, from each table to its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pgtrickle.plan.operators import Operator, Scan
from pgtrickle.plan.restriction.meeting import met_by
from pgtrickle.plan.restriction.region import Edge, has_index, region_of
from pgtrickle.plan.restriction.wants import Needs, Want, each

if TYPE_CHECKING:
    from pgtrickle.plan.restriction.binding import Binding


class Messages:
    """Carries keys through a region: what a leaf gives to a neighbour does not depend on that one."""

    def __init__(self, binding: Binding, op: Operator, needs: Needs) -> None:
        self._binding = binding
        self._region = region_of(op)
        self._known: dict[tuple[int, int], Needs] = {}
        self._entries: list[list[Want]] = [[] for _ in self._region.leaves]
        self._direct: list[list[Want]] = [[] for _ in self._region.leaves]
        self._met: dict[int, tuple[int, Needs]] = dict(self._meetings())
        for want in needs:
            self._enter(want)

    def leaves(self) -> list[Operator]:
        """The leaves, bound with all that the others ask of them."""
        numbers = range(len(self._region.leaves))
        asked = [
            (
                *self._entries[n],
                *self._direct[n],
                *(w for e in self._region.at(n) for w in self._sent(e, e.other(n))),
            )
            for n in numbers
        ]
        return [
            self._binding.bound(leaf, each(needs))
            for leaf, needs in zip(self._region.leaves, asked, strict=True)
        ]

    def _meetings(self) -> Iterator[tuple[int, tuple[int, Needs]]]:
        """The leaves whose changed groups a filtered neighbour is asked for, and what it is asked."""
        for number, leaf in enumerate(self._region.leaves):
            for edge in self._region.at(number):
                other = self._region.leaves[edge.other(number)]
                if not isinstance(other, Scan) or other.condition is None:
                    continue
                if met := met_by(self._binding, leaf, edge.pairs_from(number)):
                    yield number, (edge.other(number), met)
                    break

    def _enter(self, want: Want) -> None:
        """Let a need in: at every leaf if all have its columns, else where it serves best."""
        own = [want.over(partial(self._region.place, n)) for n in range(len(self._region.leaves))]
        if all(len(one.columns) == len(want.columns) for one in own):
            for number, one in enumerate(own):
                self._direct[number].append(one)
            return
        best = max(range(len(own)), key=lambda n: self._rank(n, own[n]))
        self._entries[best].append(own[best])

    def _rank(self, leaf: int, want: Want) -> tuple[bool, bool, int]:
        indexed = any(has_index(self._region.leaves[leaf], name) for name in want.columns)
        return bool(want.columns), indexed, len(want.columns)

    def _sent(self, edge: Edge, leaf: int) -> Needs:
        """What the rows of a leaf ask of its neighbour on this edge."""
        there = edge.other(leaf)
        if (leaf, there) not in self._known:
            asked: list[Want] = list(self._entries[leaf])
            if there in self._met and self._met[there][0] == leaf:
                asked += self._met[there][1]
            for other in self._region.at(leaf):
                if other is not edge:
                    asked += self._sent(other, other.other(leaf))
            self._known[leaf, there] = self._binding.keys(
                self._region.leaves[leaf], each(asked), edge.pairs_from(leaf), is_null_safe=False
            )
        return self._known[leaf, there]
