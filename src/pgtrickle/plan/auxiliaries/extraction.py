"""Rewrites a query over inner results that are kept: each becomes a scan of its table.

Bottom up, so that a result may be made of others. Results that are the same, but for the names that the plan
gives to their columns, are kept once. What is above a new scan moves into it where it can, as it does for
the tables of the query: PostgreSQL evaluates it, and lookups reach through it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from sqlglot import exp

from pgtrickle.model.auxiliary import MOST_NUMBERS, auxiliary_id, auxiliary_table
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.source import Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.condition_pushdown import restrict
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.copying import with_numbered_names
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.auxiliaries.choice import Choice, is_extractable, top_groups
from pgtrickle.plan.expressions import Expression, column, conjuncts
from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    GroupKey,
    Mark,
    Operator,
    Project,
    Recursive,
    Scan,
    ScanColumn,
)
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.properties import is_nullable
from pgtrickle.plan.rules.pairs import columns_read
from pgtrickle.plan.rules.scan import over_source_columns
from pgtrickle.plan.targets.choose import is_mergeable
from pgtrickle.plan.targets.groups import Grouped
from pgtrickle.plan.targets.merged import Merged
from pgtrickle.plan.targets.widths import require_room


@dataclass(frozen=True, slots=True)
class Extracted:
    """A result that is kept: how it is made, how it is maintained, and the table that shows it."""

    aggregate: Aggregate
    shape: Merged
    source: Source


@dataclass(slots=True)
class Extraction:
    """One rewriting of a query; `found` are the results it keeps, each after those that it reads."""

    context: Context
    choice: Choice
    found: list[Extracted] = field(default_factory=list)
    _known: list[tuple[Operator, Extracted]] = field(default_factory=list)

    def rewrite(self, block: Block) -> Block:
        """The block over tables of kept results."""
        top = top_groups(block.operator)
        self.choice.look(block.operator, top)
        return replace(block, operator=self._visit(block.operator))

    def _visit(self, op: Operator) -> Operator:
        if isinstance(op, Recursive):
            return op
        is_kept = self.choice.is_kept(op)
        children = tuple(self._visit(child) for child in op.children)
        is_same = all(new is old for new, old in zip(children, op.children, strict=True))
        new = op if is_same else self._over(op, children)
        return self._extract(new) if is_kept else new

    def _over(self, op: Operator, children: tuple[Operator, ...]) -> Operator:
        """The operator over other children, moved into the scan of a kept result if that is all there is."""
        if isinstance(op, Filter):
            return self._restrict(children[0], op.condition)
        if isinstance(op, Project) and _is_kept_scan(children[0]):
            return _computed_in_scan(op, children[0])
        return op.with_children(children)

    def _restrict(self, op: Operator, condition: Expression) -> Operator:
        """The rows for which a condition holds, compared by columns if that is possible."""
        for part in conjuncts(condition):
            op = restrict(op, part, self.context)
            if isinstance(op, Filter) and op.condition == part:
                pushdown = ScanPushdown(self.context, op.child)
                pushed = pushdown.push(part)
                is_by_columns = isinstance(pushed.node.unnest(), exp.Binary) and all(
                    Expression(side).column for side in pushed.node.unnest().iter_expressions()
                )
                op = Filter(pushdown.operator, pushed) if is_by_columns else op
        return op

    def _extract(self, op: Operator) -> Operator:
        """The operator, or the right of a mark, as a scan of its table, if it can be kept."""
        if isinstance(op, Mark):
            read = columns_read(op) & op.right.names
            columns = [c for c in op.right.columns if c.name in read]
            groups = Aggregate(op.right, tuple(GroupKey(c, column(c.name)) for c in columns), ())
            return replace(op, right=self._scan(groups) or op.right)
        if isinstance(op, Distinct):
            groups = Aggregate(op.child, tuple(GroupKey(c, column(c.name)) for c in op.columns), ())
            return self._scan(groups) or op
        return self._scan(op) or op if isinstance(op, Aggregate) else op

    def _scan(self, aggregate: Aggregate) -> Scan | None:
        found = self._kept(aggregate)
        if found is None:
            return None
        alias = self.context.unique(found.source.name.name)
        outputs = tuple(ScanColumn(c, column(c.name)) for c in aggregate.columns)
        return Scan(found.source, alias, tuple(c.name for c in aggregate.columns), outputs)

    def _kept(self, aggregate: Aggregate) -> Extracted | None:
        """The result that is kept of these groups; None if it cannot be."""
        numbered = with_numbered_names(aggregate)
        for known, extracted in self._known:
            if known == numbered:
                return extracted
        if not is_extractable(aggregate) or not is_mergeable(aggregate):
            return None
        source = self._source(aggregate, numbered)
        outputs = tuple(
            (own.name, c.type, column(c.name))
            for own, c in zip(source.columns, aggregate.columns, strict=True)
        )
        try:
            shape = Merged(Grouped(aggregate, None, outputs))
            program = shape.initial()
            require_room(program.target)
        except UnsupportedQuery:
            return None
        extracted = Extracted(aggregate, shape, source)
        self._known.append((numbered, extracted))
        self.found.append(extracted)
        return extracted

    def _source(self, aggregate: Aggregate, numbered: Operator) -> Source:
        keys = len(aggregate.keys)
        names = [
            f"key_{n + 1}" if n < keys else f"value_{n + 1 - keys}" for n in range(len(aggregate.columns))
        ]
        columns = tuple(
            SourceColumn(name, number, c.type, is_nullable(aggregate, c.name))
            for number, (name, c) in enumerate(zip(names, aggregate.columns, strict=True), start=1)
        )
        relation = auxiliary_id(self.context.definition.stream_table, self._number(aggregate, numbered))
        return Source(
            RelationId(relation),
            auxiliary_table(relation),
            SourceKind.AUXILIARY,
            columns,
            keys=(tuple(names[:keys]),),
            # it gets those by which it is looked up
            indexes=tuple((name,) for name in names),
        )

    def _number(self, aggregate: Aggregate, numbered: Operator) -> int:
        """A number that stands for the definition: another one is never taken for this one."""
        types = [(c.type.text, c.type.collation) for c in aggregate.columns]
        digest = hashlib.sha256(f"{postgres_sql(numbered)} {types}".encode()).digest()
        number = int.from_bytes(digest[:8], "big") % MOST_NUMBERS
        owner = self.context.definition.stream_table
        taken = {extracted.source.relation for extracted in self.found}
        while auxiliary_id(owner, number) in taken or number == 0:
            number = (number + 1) % MOST_NUMBERS
        return number


def _computed_in_scan(op: Project, scan: Scan) -> Project:
    """The projection of columns that the scan has computed already."""
    pairs = list(zip(op.columns, op.expressions, strict=True))
    made = tuple(ScanColumn(c, over_source_columns(scan, e)) for c, e in pairs if e.column is None)
    wider = replace(scan, outputs=(*scan.outputs, *made))
    return Project(wider, op.columns, tuple(e if e.column else column(c.name) for c, e in pairs))


def _is_kept_scan(op: Operator) -> TypeGuard[Scan]:
    return isinstance(op, Scan) and op.source.kind is SourceKind.AUXILIARY
