"""Checks the three things that hold of a bound tree: see `pgtrickle.plan.passes.bind.binding`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import assume

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.expressions.clock import has_clock
from pgtrickle.plan.operators import Operator, Scan
from pgtrickle.plan.passes.bind import Binding
from pgtrickle.plan.rules.needs import EVERYTHING, Need
from tests.laws.ends import Rows, both_ends, change, end
from tests.laws.groups import MoreThanOneRow
from tests.laws.reading import Reader, Table, remembered
from tests.laws.rows import Row, positions
from tests.laws.zsets import World, ZSet, minus, truth

Relations = frozenset[RelationId]
Given = Mapping[str, Table]

GIVEN = "given"
"""The read whose keys the drawn needs are about."""


@dataclass(frozen=True)
class Needed:
    """Needs, and the keys that they are about."""

    wants: tuple[Need, ...] = ()
    keys: tuple[Row, ...] = ()

    @property
    def table(self) -> Table:
        """The keys as something that was read."""
        width = len(self.keys[0]) if self.keys else 4
        names = tuple(f"k{number}" for number in range(width))
        return Table(names, tuple((key, 1, False) for key in self.keys))

    def has(self, op: Operator, row: Row) -> bool:
        """Whether the row is needed."""
        return any(self._wanted(want, op, row) for want in self.wants)

    def _wanted(self, want: Need, op: Operator, row: Row) -> bool:
        if want.providers is None:
            return True
        found = tuple(row[i] for i in positions(op, want.columns))
        keys = {tuple(key[int(f[1:])] for f in p.fields) for p in want.providers for key in self.keys}
        return found in keys and (want.is_null_safe or None not in found)


def clocked(op: Operator) -> Relations:
    """The sources of which the clock lets rows in and out."""
    scans = (part for part in op.walk() if isinstance(part, Scan))
    return frozenset(scan.source.relation for scan in scans if has_clock(scan.condition))


def truths(op: Operator, world: World) -> tuple[ZSet, ZSet]:
    """The tree before and now; a tree that is an error at one end proves nothing."""
    try:
        return truth(op, world.old, world.before), truth(op, world.new, world.now)
    except MoreThanOneRow:
        assume(False)
        raise


def bound_rows(
    op: Operator,
    world: World,
    changed: Relations,
    needed: Needed = Needed(),  # noqa: B008
    many: int = 100,
    is_whole: bool = False,
    lost: Callable[[str], bool] = lambda name: False,
) -> Rows:
    """The rows of the tree, bound, read and evaluated."""
    with remembered() as queries:
        bound, reads = Binding(changed).program(op, needed.wants)
    assert [c.name for c in bound.columns] == [c.name for c in op.columns]
    reader = Reader(world, queries, many, is_whole, {GIVEN: needed.table}, lost)
    return both_ends(bound, reader.read_all(reads))


def check(
    op: Operator,
    world: World,
    changed: Relations = frozenset(),
    needed: Needed = Needed(),  # noqa: B008
    many: int = 100,
    is_whole: bool = False,
    lost: Callable[[str], bool] = lambda name: False,
) -> None:
    """What changed is right; what is needed is right and complete at both ends."""
    was, now = truths(op, world)
    rows = bound_rows(op, world, world.changed | clocked(op) | changed, needed, many, is_whole, lost)
    assert change(rows) == minus(now, was)
    for number, true in ((0, was), (1, now)):
        found = end(rows, number)
        assert _needed_part(op, found, needed) == _needed_part(op, true, needed)


def _needed_part(op: Operator, rows: ZSet, needed: Needed) -> ZSet:
    return ZSet({row: weight for row, weight in rows.items() if needed.has(op, row)})


ALL = Needed((EVERYTHING,))
