"""Turns the scans of a tree into reads that are restricted to what can matter.

Bound with some needs, a tree gives relations in which each row has two weights: how often it was
there before the window, and how often it is there now. Three things hold of them:

- what changed is right: the difference of the weights is the change of the tree;
- what is needed is right and complete, at both ends of the window;
- any other row, which may be wrong (a group of which only some rows were read), has the same
  weight at both ends, and nothing that changed ever meets it.

The rule of each operator says what it needs of its children for that.
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
    Top,
    Values,
    Window,
)
from pgtrickle.plan.passes.bind.answers import add_answer, add_closure, add_constant, add_recursion
from pgtrickle.plan.passes.bind.derivations import Derivations, derivations_of
from pgtrickle.plan.passes.bind.propagation import Propagation
from pgtrickle.plan.passes.bind.reads import Reads, inputs_of, reachable
from pgtrickle.plan.passes.bind.region import is_region, with_leaves
from pgtrickle.plan.passes.bind.semi_join_reduction import groups_at_top
from pgtrickle.plan.properties import has_one_row, is_padded, reads_holding
from pgtrickle.plan.reads import Read
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.needs import EVERYTHING, Need, Needs, needs_below


def bind(
    op: Operator, changed: frozenset[RelationId], needs: Needs = ()
) -> tuple[Operator, tuple[Read, ...]]:
    """The tree over reads for a window in which these sources have changed, and the reads in their order."""
    return Binding(changed).program(op, needs)


@dataclass(slots=True)
class Binding:
    """One binding of a tree, for a window in which these sources have changed."""

    changed: frozenset[RelationId]
    _reads: Reads = field(init=False)
    _known: dict[tuple[int, bool, Needs], Operator] = field(default_factory=dict)
    _reduced: set[int] = field(default_factory=set)
    _is_inside: bool = False

    def __post_init__(self) -> None:
        self._reads = Reads(self.changed)

    def program(self, op: Operator, needs: Needs = ()) -> tuple[Operator, tuple[Read, ...]]:
        """The tree over reads, and the reads in their order."""
        bound = self._with_all_reads(self.bind(op, needs))
        return bound, reachable(self._reads.all, {name for one in inputs_of(bound) for name, _ in one.reads})

    def bind(self, op: Operator, needs: Needs) -> Operator:
        """The tree over reads that meet these needs; what was bound for keys is not bound again."""
        asked = (id(op), self._is_inside, needs)
        if asked not in self._known:
            self._known[asked] = self._bind(op, needs)
        return self._known[asked]

    def _bind(self, op: Operator, needs: Needs) -> Operator:
        # `Itself` stands for rows of the recursion, which reads all of its rows anyway
        if not needs and not self.is_changed(op) and not isinstance(op, Itself):
            return Nothing(op.columns)
        if EVERYTHING in needs and op.children and not isinstance(op, Evaluated):
            return op.with_children(tuple(self.bind(child, (EVERYTHING,)) for child in op.children))
        return RULES[type(op)].bind(op, needs, self)

    def bind_region(self, op: Operator, needs: Needs) -> Operator:
        """Connected inner joins, bound by propagating keys between their tables."""
        return with_leaves(op, iter(Propagation(self, op, needs).bind_leaves()))

    def is_region(self, op: Operator) -> bool:
        """Whether the operator is the top of connected inner joins."""
        return is_region(op)

    def read_scan(self, op: Scan, needs: Needs) -> Operator:
        """The change of a source, and the rows of it that meet these needs."""
        return self._reads.leaf(op, needs)

    def read_constant(self, op: Values) -> Operator:
        """Rows that are always the same."""
        return add_constant(op, self._reads)

    def is_changed(self, op: Operator) -> bool:
        """Whether a source below has changed."""
        return any(isinstance(part, Scan) and part.source.relation in self.changed for part in op.walk())

    def changed_keys(self, op: Operator, pairs: Iterable[tuple[str, str]], *, is_null_safe: bool) -> Needs:
        """What the changed rows of `op` need of columns: pairs of a target and a column of `op`."""
        return self.keys(op, (), list(pairs), is_null_safe=is_null_safe)

    def keys(self, op: Operator, needs: Needs, pairs: list[tuple[str, str]], *, is_null_safe: bool) -> Needs:
        """What the changed and the needed rows of `op` need of the columns they are paired with."""
        safe = [(ours, theirs) for ours, theirs in pairs if not (is_null_safe and is_padded(op, theirs))]
        return _needs_from(self.bind(op, needs), safe, is_null_safe=is_null_safe)

    def touched_groups(self, op: Operator) -> Needs:
        """The groups of `op` that must be read as a whole because they changed."""
        return () if id(op) in self._reduced else self._changed_groups(op)

    def keys_of_groups(self, op: Operator, pairs: list[tuple[str, str]]) -> Needs:
        """What the changed groups at the top of `op` need of the rows that join them.

        The pairs are (their column, ours). It is nothing if the tree does not end in groups, or if the pairs
        do not hold all of their key. Otherwise
        a changed group is read as a whole only where one of those rows needs it.
        """
        found = groups_at_top(op, pairs)
        if found is None or not self.is_changed(found[0]):
            return ()
        groups, paired = found
        keys = self._changed_groups(groups)
        of_group = RULES[type(groups)].groups(groups)
        assert of_group is not None
        names = of_group.names
        if not names <= paired.keys() or not all(set(need.columns) == names for need in keys):
            return ()
        self._reduced.add(id(groups))
        return needs_below(keys, paired)

    def _changed_groups(self, op: Operator) -> Needs:
        """The keys of an operator's groups that the change of its child touches, over its own columns."""
        groups = RULES[type(op)].groups(op)
        assert groups is not None
        return self.changed_keys(op.children[0], groups.pairs, is_null_safe=True)

    def _with_all_reads(self, op: Operator) -> Operator:
        if isinstance(op, Leaf):
            return self._reads.with_all_reads(op)
        return op.with_children(tuple(self._with_all_reads(child) for child in op.children))

    def read_answer(self, op: Evaluated, needs: Needs) -> Operator:
        """What PostgreSQL evaluates over the rows that the change and these needs reach."""
        was_inside, self._is_inside = self._is_inside, True
        derivations = None if was_inside or needs else _derivations(op)
        if derivations is not None:
            bound = self.bind(derivations.query, ())
            self._is_inside = False
            return add_closure(bound, op.columns, derivations.closure, self._reads)
        child = self.bind(op.child, needs)
        is_grouped = isinstance(op.child, (Aggregate, Window, Top))
        own = self.touched_groups(op.child) if is_grouped else self._gate(op.child)
        self._is_inside = was_inside
        if was_inside:
            return child
        if _is_recursive(op):
            return add_recursion(child, op.columns, needs, self._reads)
        has_kept = own or id(op.child) in self._reduced
        return add_answer(child, op.columns, (*needs, *own) if has_kept else (), self._reads)

    def _gate(self, op: Operator) -> Needs:
        """What opens the one group of an aggregate without keys, also below a projection."""
        while isinstance(op, Project):
            op = op.child
        is_grouped = RULES[type(op)].groups(op) is not None
        return self.touched_groups(op) if is_grouped and has_one_row(op) else ()


def _needs_from(bound: Operator, pairs: list[tuple[str, str]], *, is_null_safe: bool) -> Needs:
    """What the rows of a bound tree need of the columns they are paired with: (target, own) each."""
    for chosen in (pairs, *([pair] for pair in pairs), []):
        found = reads_holding(bound, tuple(own for _, own in chosen))
        if found is not None:
            targets = tuple(target for target, _ in chosen)
            return (Need(targets, found, is_null_safe and bool(targets)),) if found else ()
    # no read tells what a recursion will reach, or that there is no row of an aggregate without keys
    return (EVERYTHING,)


def _derivations(op: Evaluated) -> Derivations | None:
    return derivations_of(op.child) if isinstance(op.child, Recursive) else None


def _is_recursive(op: Evaluated) -> bool:
    """Whether there is a recursion in it, whose rows PostgreSQL can compare as Spark would."""
    can_compare = bool(op.columns) and all(column.type.deterministic for column in op.columns)
    return can_compare and any(isinstance(part, Recursive) for part in op.walk())
