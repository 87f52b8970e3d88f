"""Pushes the keys of a change down to the scans, where they become lookups in PostgreSQL.

A restriction never has to be exact: a join or a semi-join above keeps what truly belongs. It has
to keep every row that can matter, so keys are traced back to the reads they come from, and a
read's keys are a superset of the keys that survive the operators in between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from pgtrickle.model.carrier import Field
from pgtrickle.plan.deltas.rules import with_children
from pgtrickle.plan.dialect import parsed, written
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.postgres import over_source
from pgtrickle.plan.operators import (
    Aggregate,
    Change,
    Distinct,
    Filter,
    Input,
    Join,
    Negate,
    Operator,
    Past,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from pgtrickle.plan.program import KeyColumns, Lookup, Read, ReadKind
from pgtrickle.plan.tracing import traced


@dataclass(frozen=True, slots=True)
class Want:
    """Only rows whose `columns` are among the keys in `providers` can matter."""

    columns: tuple[str, ...]
    providers: tuple[KeyColumns, ...]
    is_null_safe: bool


@dataclass(slots=True)
class Binding:
    """Turns the leaves of a tree into reads, in the order in which they can be read."""

    reads: list[Read] = field(default_factory=list)

    def bound(self, op: Operator, wants: tuple[Want, ...] = ()) -> Operator:
        """The tree over reads, each restricted by what is wanted of it."""
        if isinstance(op, Change):
            return self._read(op.scan, ReadKind.CHANGES, ())
        if isinstance(op, Scan):
            return self._read(op, ReadKind.ROWS, _lookups(op, wants))
        if isinstance(op, Past):
            now = self._read(op.scan, ReadKind.ROWS, _lookups(op.scan, wants))
            return UnionAll((now, Negate(self._read(op.scan, ReadKind.CHANGES, ()))))
        if isinstance(op, SemiJoin):
            return self._semijoin(op, wants)
        if isinstance(op, Join):
            return self._join(op, wants)
        if isinstance(op, UnionAll):
            return UnionAll(tuple(self.bound(arm, _by_position(op, arm, wants)) for arm in op.arms))
        if isinstance(op, Negate):
            return Negate(self.bound(op.child, wants))
        (child,) = op.children
        return with_children(op, (self.bound(child, _below(op, wants)),))

    def _semijoin(self, op: SemiJoin, wants: tuple[Want, ...]) -> Operator:
        keys = self.bound(op.keys)
        pairs = [
            (on.column, key.name)
            for on, key in zip(op.on, op.keys.columns, strict=False)
            if on.column is not None
        ]
        added = _wants_from(keys, pairs, is_null_safe=True)
        return SemiJoin(self.bound(op.child, wants + added), keys, op.on)

    def _join(self, op: Join, wants: tuple[Want, ...]) -> Operator:
        left_wants = tuple(want for want in wants if set(want.columns) <= op.left.names)
        right_wants = tuple(want for want in wants if set(want.columns) <= op.right.names)
        if _drive(op.left, left_wants) >= _drive(op.right, right_wants):
            left = self.bound(op.left, left_wants)
            added = _wants_from(left, [(ours, theirs) for theirs, ours in op.on], is_null_safe=False)
            return replace(op, left=left, right=self.bound(op.right, right_wants + added))
        right = self.bound(op.right, right_wants)
        added = _wants_from(right, list(op.on), is_null_safe=False)
        return replace(op, left=self.bound(op.left, left_wants + added), right=right)

    def _read(self, scan: Scan, kind: ReadKind, lookups: tuple[Lookup, ...]) -> Input:
        read = Read(
            name="",
            kind=kind,
            source=scan.source,
            query=None,
            fields=tuple(Field(c.name, c.carrier) for c in scan.columns),
            expressions=tuple(over_source(scan, output.expression) for output in scan.outputs),
            uses=_uses(scan),
            condition=over_source(scan, scan.condition) if scan.condition else None,
            lookups=lookups,
        )
        for known in self.reads:
            if replace(known, name="") == read:
                return Input(known, scan.columns)
        prefix = "change_of" if kind is ReadKind.CHANGES else "rows_of"
        named = replace(read, name=self.fresh(f"{prefix}_{scan.alias}"))
        self.reads.append(named)
        return Input(named, scan.columns)

    def fresh(self, wish: str) -> str:
        """A name for a read that no other read has, fit to be a view's name."""
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in wish.lower())
        taken = {read.name for read in self.reads}
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        return name


def _uses(scan: Scan) -> tuple[str, ...]:
    expressions = [output.expression for output in scan.outputs]
    if scan.condition:
        expressions.append(scan.condition)
    names = {name for expression in expressions for name in expression.columns}
    return tuple(sorted(scan.source_column(name) for name in names))


def _drive(op: Operator, wants: tuple[Want, ...]) -> int:
    """How good a side is to begin with: a change is small, a restricted side is smaller than none."""
    if any(isinstance(part, Change) for part in op.walk()):
        return 2
    return 1 if wants else 0


def _wants_from(provider: Operator, pairs: list[tuple[str, str]], *, is_null_safe: bool) -> tuple[Want, ...]:
    """What the rows of `provider` ask of the columns they are paired with."""
    if not pairs:
        return ()
    together = traced(provider, tuple(theirs for _, theirs in pairs))
    if together:
        return (Want(tuple(ours for ours, _ in pairs), together, is_null_safe),)
    single = []
    for ours, theirs in pairs:
        if found := traced(provider, (theirs,)):
            single.append(Want((ours,), found, is_null_safe))
    return tuple(single)


def _lookups(scan: Scan, wants: tuple[Want, ...]) -> tuple[Lookup, ...]:
    """The one want that serves best as a lookup: an indexed one, else the first."""
    usable = [want for want in wants if set(want.columns) <= scan.names]
    if not usable:
        return ()
    best = next((want for want in usable if is_indexed(scan, want.columns)), usable[0])
    keys = tuple(Field(name, scan.column(name).carrier) for name in best.columns)
    columns = tuple(over_source(scan, scan.expression(name)) for name in best.columns)
    return (Lookup(columns, keys, best.providers, best.is_null_safe),)


def is_indexed(scan: Scan, columns: tuple[str, ...]) -> bool:
    """Whether an index of the source begins with one of these columns."""
    texts = {same_text(_indexed_text(scan, name)) for name in columns}
    return any(index and same_text(index[0]) in texts for index in scan.source.indexes)


def same_text(expression: str) -> str:
    """An expression in a form in which equal ones are equal, however they are written."""
    tree = parsed(expression)
    text = written(tree) if tree is not None else expression
    return re.sub(r"[\s\"()]|\bt\.", "", text).lower()


def _indexed_text(scan: Scan, name: str) -> str:
    expression = scan.expression(name)
    bare = expression.column
    return scan.source_column(bare) if bare is not None else expression.over(scan.source_column)


def _below(op: Operator, wants: tuple[Want, ...]) -> tuple[Want, ...]:
    """Wants of an operator's columns as wants of its child's."""
    if isinstance(op, (Filter, Distinct)):
        return wants
    outputs: dict[str, Expression] = {}
    if isinstance(op, Project):
        outputs = {c.name: e for c, e in zip(op.columns, op.expressions, strict=True)}
    elif isinstance(op, Aggregate):
        outputs = {key.column.name: key.expression for key in op.keys}
    kept = []
    for want in wants:
        below = [outputs[name].column if name in outputs else None for name in want.columns]
        if all(name is not None for name in below):
            kept.append(replace(want, columns=tuple(name for name in below if name is not None)))
    return tuple(kept)


def _by_position(op: UnionAll, arm: Operator, wants: tuple[Want, ...]) -> tuple[Want, ...]:
    renamed = {c.name: own.name for c, own in zip(op.columns, arm.columns, strict=True)}
    return tuple(replace(want, columns=tuple(renamed[name] for name in want.columns)) for want in wants)
