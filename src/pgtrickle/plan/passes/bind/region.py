"""Connected inner joins, as a graph: keys travel along its edges from table to table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgtrickle.plan.operators import Aggregate, Filter, Join, Operator, Scan
from pgtrickle.plan.passes.bind.reads import is_indexed
from pgtrickle.plan.properties import origin


@dataclass(frozen=True, slots=True)
class Edge:
    """Two leaves, by number, and the columns of one that equal those of the other."""

    first: int
    second: int
    pairs: tuple[tuple[str, str], ...]

    def pairs_from(self, leaf: int) -> list[tuple[str, str]]:
        """The pairs as (column of the other leaf, column of this leaf)."""
        return [(b, a) if leaf == self.first else (a, b) for a, b in self.pairs]

    def other(self, leaf: int) -> int:
        """The leaf at the other end."""
        return self.second if leaf == self.first else self.first


@dataclass(frozen=True, slots=True)
class Region:
    """The leaves of nested inner joins and the edges of a tree that spans them."""

    leaves: tuple[Operator, ...]
    edges: tuple[Edge, ...]
    equal: tuple[frozenset[str], ...]

    def at(self, leaf: int) -> list[Edge]:
        """The edges that end at a leaf."""
        return [edge for edge in self.edges if leaf in (edge.first, edge.second)]

    def place(self, leaf: int, name: str) -> str | None:
        """The column of a leaf that always equals the named one, if there is one."""
        names = self.leaves[leaf].names
        if name in names:
            return name
        for group in self.equal:
            if name in group and group & names:
                return min(group & names)
        return None


def region_of(op: Operator) -> Region:
    """The region that an inner join is the top of."""
    leaves = tuple(_leaves(op))
    pairs = [pair for join in _joins(op) for pair in join.on]
    return Region(leaves, tuple(_spanning_edges(leaves, pairs)), tuple(_classes(pairs)))


def is_region(op: Operator) -> bool:
    """Whether the operator is the top of connected inner joins."""
    return isinstance(op, Join) or (isinstance(op, Filter) and is_region(op.child))


def with_leaves(op: Operator, leaves: Iterator[Operator]) -> Operator:
    """The same joins over other leaves."""
    if is_region(op):
        return op.with_children(tuple(with_leaves(child, leaves) for child in op.children))
    return next(leaves)


def _leaves(op: Operator) -> Iterator[Operator]:
    if is_region(op):
        for child in op.children:
            yield from _leaves(child)
    else:
        yield op


def _joins(op: Operator) -> Iterator[Join]:
    if isinstance(op, Join):
        yield op
    if is_region(op):
        for child in op.children:
            yield from _joins(child)


def _classes(pairs: list[tuple[str, str]]) -> list[frozenset[str]]:
    groups: list[frozenset[str]] = []
    for pair in pairs:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching]
        groups.append(frozenset(pair).union(*touching))
    return groups


def _spanning_edges(leaves: tuple[Operator, ...], pairs: list[tuple[str, str]]) -> Iterator[Edge]:
    """The edges of a tree over all leaves, those with indexes first; without columns if need be."""
    owner = {name: number for number, leaf in enumerate(leaves) for name in leaf.names}
    between: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for left, right in pairs:
        a, b = owner[left], owner[right]
        pair = (left, right) if a < b else (right, left)
        between.setdefault((min(a, b), max(a, b)), []).append(pair)
    found = [Edge(a, b, tuple(columns)) for (a, b), columns in between.items() if a != b]
    found.sort(key=lambda edge: _quality(edge, leaves), reverse=True)
    found += [Edge(0, number, ()) for number in range(1, len(leaves))]
    group = list(range(len(leaves)))
    for edge in found:
        here, there = group[edge.first], group[edge.second]
        if here != there:
            group = [here if mark == there else mark for mark in group]
            yield edge


def _quality(edge: Edge, leaves: tuple[Operator, ...]) -> tuple[int, int]:
    """In how many of its two directions a key finds one row at most, and how many an index serves."""
    sides = ((edge.first, [a for a, _ in edge.pairs]), (edge.second, [b for _, b in edge.pairs]))
    unique = sum(_finds_one(leaves[leaf], names) for leaf, names in sides)
    return unique, sum(any(has_index(leaves[leaf], name) for name in names) for leaf, names in sides)


def _finds_one(op: Operator, names: list[str]) -> bool:
    """Whether no two rows share the values of these columns."""
    if isinstance(op, Aggregate):
        return {key.column.name for key in op.keys} <= set(names)
    found = [origin(op, name) for name in names]
    sources = {place[0].alias for place in found if place is not None}
    if None in found or len(sources) != 1:
        return False
    columns = {_source_column(*place) for place in found if place is not None}
    scan = next(place[0] for place in found if place is not None)
    return any(set(key) <= columns for key in scan.source.keys)


def _source_column(scan: Scan, name: str) -> str | None:
    bare = scan.expression(name).column
    return scan.source_column(bare) if bare is not None else None


def has_index(op: Operator, name: str) -> bool:
    """Whether a lookup by this column of a tree would be answered by an index."""
    found = origin(op, name)
    return found is not None and is_indexed(found[0], (found[1],))
