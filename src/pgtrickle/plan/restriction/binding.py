"""Turns the scans of a tree into reads that are restricted to what can matter.

Bound with some needs, a tree gives relations in which each row has two weights: how often it was
there before the window, and how often it is there now. Three things hold of them:

- what changed is right: the difference of the weights is the change of the tree;
- what is needed is right and complete, at both ends of the window;
- any other row, which may be wrong (a group of which only some rows were read), has the same
  weight at both ends, and nothing that changed ever meets it.

For each operator `rules.py` says what it needs of its children for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.operators import (
    Aggregate,
    Evaluated,
    Itself,
    Leaf,
    Nothing,
    Operator,
    Project,
    Recursive,
    Scan,
    Single,
    Top,
    Values,
    Window,
)
from pgtrickle.plan.reads import Read
from pgtrickle.plan.restriction.answers import answer_of, constant, recursion_of
from pgtrickle.plan.restriction.messages import Messages
from pgtrickle.plan.restriction.passing import padded, wants_from
from pgtrickle.plan.restriction.reading import Reads, inputs_of, reachable
from pgtrickle.plan.restriction.region import is_region, with_leaves
from pgtrickle.plan.restriction.rules import RULES
from pgtrickle.plan.restriction.wants import EVERYTHING, Needs
from pgtrickle.plan.trees import with_children


@dataclass(slots=True)
class Binding:
    """One binding of a tree, for a window in which these sources have changed."""

    changed: frozenset[RelationId]
    _reads: Reads = field(init=False)
    _known: dict[tuple[int, bool, Needs], Operator] = field(default_factory=dict)
    _met: set[int] = field(default_factory=set)
    _is_inside: bool = False

    def __post_init__(self) -> None:
        self._reads = Reads(self.changed)

    def program(self, op: Operator, needs: Needs = ()) -> tuple[Operator, tuple[Read, ...]]:
        """The tree over reads, and the reads in their order."""
        bound = self._finished(self.bound(op, needs))
        return bound, reachable(self._reads.all, {name for one in inputs_of(bound) for name, _ in one.reads})

    def bound(self, op: Operator, needs: Needs) -> Operator:
        """The tree over reads that meet these needs; what was bound for keys is not bound again."""
        asked = (id(op), self._is_inside, needs)
        if asked not in self._known:
            self._known[asked] = self._bound(op, needs)
        return self._known[asked]

    def _bound(self, op: Operator, needs: Needs) -> Operator:
        if isinstance(op, Itself):
            return op
        if not needs and not self.is_changed(op):
            return Nothing(op.columns)
        if isinstance(op, Scan):
            return self._reads.leaf(op, needs)
        if isinstance(op, Values):
            return constant(op, self._reads)
        if isinstance(op, Evaluated):
            return self._evaluated(op, needs)
        if EVERYTHING in needs:
            return with_children(op, tuple(self.bound(child, (EVERYTHING,)) for child in op.children))
        if is_region(op):
            return self._region(op, needs)
        return with_children(op, RULES[type(op)](self, op, needs))

    def is_changed(self, op: Operator) -> bool:
        """Whether a source below has changed."""
        return any(isinstance(part, Scan) and part.source.relation in self.changed for part in op.walk())

    def changed_keys(self, op: Operator, pairs: Iterable[tuple[str, str]], *, is_null_safe: bool) -> Needs:
        """What the changed rows of `op` ask of columns: pairs of a target and a column of `op`."""
        return self.keys(op, (), list(pairs), is_null_safe=is_null_safe)

    def keys(self, op: Operator, needs: Needs, pairs: list[tuple[str, str]], *, is_null_safe: bool) -> Needs:
        """What the changed and the needed rows of `op` ask of the columns they are paired with."""
        safe = [(ours, theirs) for ours, theirs in pairs if not (is_null_safe and padded(op, theirs))]
        return wants_from(self.bound(op, needs), safe, is_null_safe=is_null_safe)

    def own_keys(self, op: Operator) -> Needs:
        """The keys of an operator's groups that the change of its child touches, over its own columns."""
        if isinstance(op, Aggregate):
            pairs = [(k.column.name, k.expression.column) for k in op.keys if k.expression.column is not None]
        elif isinstance(op, (Window, Top)):
            pairs = [(name, name) for name in op.partition]
        elif isinstance(op, Single):
            pairs = [(name, name) for name in op.keys]
        else:
            pairs = [(c.name, c.name) for c in op.columns]
        return self.changed_keys(op.children[0], pairs, is_null_safe=True)

    def complete_if_met(self, groups: Operator) -> None:
        """Read a changed group as a whole only where it is needed: others say which ones they meet."""
        self._met.add(id(groups))

    def touched(self, groups: Operator) -> Needs:
        """The groups that must be read as a whole because they changed."""
        return () if id(groups) in self._met else self.own_keys(groups)

    def _finished(self, op: Operator) -> Operator:
        if isinstance(op, Leaf):
            return self._reads.finished(op)
        return with_children(op, tuple(self._finished(child) for child in op.children))

    def _evaluated(self, op: Evaluated, needs: Needs) -> Operator:
        was_inside, self._is_inside = self._is_inside, True
        child = self.bound(op.child, needs)
        own = (
            self.touched(op.child) if isinstance(op.child, (Aggregate, Window, Top)) else self._gate(op.child)
        )
        self._is_inside = was_inside
        if was_inside:
            return child
        if _is_recursive(op):
            return recursion_of(child, op.columns, needs, self._reads)
        has_kept = own or id(op.child) in self._met
        return answer_of(child, op.columns, (*needs, *own) if has_kept else (), self._reads)

    def _gate(self, op: Operator) -> Needs:
        """What opens the one group of an aggregate without keys, also below a projection."""
        while isinstance(op, Project):
            op = op.child
        return self.touched(op) if isinstance(op, Aggregate) and not op.keys else ()

    def _region(self, op: Operator, needs: Needs) -> Operator:
        return with_leaves(op, iter(Messages(self, op, needs).leaves()))


def _is_recursive(op: Evaluated) -> bool:
    """Whether there is a recursion in it, whose rows PostgreSQL can compare as Spark would."""
    can_compare = bool(op.columns) and all(column.type.deterministic for column in op.columns)
    return can_compare and any(isinstance(part, Recursive) for part in op.walk())
