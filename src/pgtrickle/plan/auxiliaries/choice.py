"""Which inner results of a query are worth keeping.

Keeping a result costs a little with every change. It pays where a change would otherwise read a whole table,
or read the same rows again for every row that looks them up:

- an aggregate without GROUP BY below another operator: every change of its input changes it;
- groups of which a value, and not their key, is compared with such an aggregate, or whose least or greatest
  value is asked for: no key leads to the groups whose answer changes;
- groups that are joined by their values and by no key: nothing leads from a changed row to its partners;
- the rows that IN or EXISTS looks for, if they come from several tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.plan.expressions import Expression, conjuncts
from pgtrickle.plan.expressions.clock import has_clock
from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Itself,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    Top,
)
from pgtrickle.plan.passes.bind.region import is_region
from pgtrickle.plan.properties import child_columns

_JOINED = (Join, OuterJoin, Mark)


@dataclass(frozen=True, slots=True)
class Region:
    """Connected inner joins: what is joined, and every condition and equality between them."""

    leaves: tuple[Operator, ...]
    conditions: tuple[Expression, ...]
    pairs: tuple[tuple[str, str], ...]


def region_at(op: Operator) -> Region:
    """The region that an operator is the top of."""
    leaves: list[Operator] = []
    conditions: list[Expression] = []
    pairs: list[tuple[str, str]] = []

    def visit(part: Operator) -> None:
        if not is_region(part):
            leaves.append(part)
            return
        if isinstance(part, Filter):
            conditions.extend(conjuncts(part.condition))
        elif isinstance(part, Join):
            pairs.extend(part.on)
            if part.condition is not None:
                conditions.extend(conjuncts(part.condition))
        for child in part.children:
            visit(child)

    visit(op)
    return Region(tuple(leaves), tuple(conditions), tuple(pairs))


def top_groups(op: Operator) -> Operator | None:
    """The groups at the top of a query, which the stream table itself shows."""
    if isinstance(op, Top) and not op.partition:
        op = op.child
    if isinstance(op, Filter) and isinstance(op.child, Aggregate):
        op = op.child
    return op if isinstance(op, (Aggregate, Distinct)) else None


def is_extractable(op: Operator) -> bool:
    """Whether the rows of a tree can be kept: they come from sources, and from nothing but sources."""
    parts = list(op.walk())
    scans = [part for part in parts if isinstance(part, Scan)]
    is_timeless = not any(has_clock(scan.condition) for scan in scans)
    is_plain = not any(isinstance(part, (Recursive, Itself)) for part in parts)
    is_typed = all(c.type.has_equality and c.type.deterministic and not c.type.domain for c in op.columns)
    return bool(scans) and is_timeless and is_plain and is_typed


@dataclass(slots=True)
class Choice:
    """The operators whose rows are worth keeping, by identity."""

    use: AuxiliaryUse
    kept: set[int] = field(default_factory=set)

    def is_kept(self, op: Operator) -> bool:
        """Whether the rows of this aggregate, or of the right of this mark, are kept."""
        return id(op) in self.kept

    def look(self, op: Operator, top: Operator | None) -> None:
        """Choose among this operator and everything below it."""
        if isinstance(op, Recursive):
            return
        if op is not top:
            self._look_at(op)
        if isinstance(op, Aggregate) and not op.keys and any(c.function in ("min", "max") for c in op.calls):
            self._keep_groups(op.child)
        if is_region(op):
            self._look_at_region(region_at(op))
        for child in op.children:
            self.look(child, top)

    def _look_at(self, op: Operator) -> None:
        is_wanted = self.use is AuxiliaryUse.ALWAYS
        match op:
            case Aggregate():
                is_wanted = is_wanted or not op.keys
            case Distinct():
                pass
            case Mark():
                is_several = is_wanted or _is_made_of_several(op.right)
                is_wanted = bool(op.on) and is_several and not isinstance(op.right, Scan)
            case _:
                return
        if is_wanted:
            self.kept.add(id(op))

    def _look_at_region(self, region: Region) -> None:
        single = [leaf for leaf in region.leaves if _is_single(leaf)]
        groups = [leaf for leaf in region.leaves if leaf not in single]
        names = frozenset(name for leaf in single for name in leaf.names)
        compared = [c.columns for c in region.conditions] + [frozenset(pair) for pair in region.pairs]
        for leaf in groups:
            is_compared = any(used & names and used & leaf.names for used in compared)
            if is_compared or _is_joined_by_values(leaf, region.pairs):
                self._keep_groups(leaf)

    def _keep_groups(self, op: Operator) -> None:
        """Keep the groups that an operator shows, if it does."""
        below = _below_projections(op)
        if isinstance(below, (Aggregate, Distinct)):
            self.kept.add(id(below))


def _is_single(op: Operator) -> bool:
    below = _below_projections(op)
    return isinstance(below, Aggregate) and not below.keys


def _below_projections(op: Operator) -> Operator:
    while isinstance(op, (Project, Filter)):
        op = op.child
    return op


def _is_joined_by_values(leaf: Operator, pairs: tuple[tuple[str, str], ...]) -> bool:
    """Whether groups are joined by values of theirs that were computed, and by nothing else."""
    joined = {name for pair in pairs for name in pair if name in leaf.names}
    return bool(joined) and not any(_is_key(leaf, name) for name in joined)


def _is_key(op: Operator, name: str) -> bool:
    """Whether a column is a key of the groups below projections; a column of anything else is one too."""
    while isinstance(op, (Project, Filter)):
        below = child_columns(op).get(name)
        if below is None:
            # computed from several columns of the groups, so no key leads through it
            return False
        op, name = op.child, below
    return not isinstance(op, Aggregate) or any(key.column.name == name for key in op.keys)


def _is_made_of_several(op: Operator) -> bool:
    return any(isinstance(part, _JOINED) for part in op.walk())


def scans_of(op: Operator) -> Iterator[Scan]:
    """The scans of a tree."""
    return (part for part in op.walk() if isinstance(part, Scan))
