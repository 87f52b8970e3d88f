"""Which delta rule each operator has, and of which kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.deltas.aggregate import aggregate_delta
from pgtrickle.plan.deltas.distinct import distinct_delta
from pgtrickle.plan.deltas.filter import filter_delta
from pgtrickle.plan.deltas.join import join_delta
from pgtrickle.plan.deltas.project import project_delta
from pgtrickle.plan.deltas.scan import scan_versions
from pgtrickle.plan.deltas.union_all import union_all_delta
from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.operators import Aggregate, Distinct, Filter, Join, Operator, Project, Scan, UnionAll


class Kind(Enum):
    """The four kinds of delta rule."""

    LINEAR = "linear"
    BILINEAR = "bilinear"
    KEYED = "keyed"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Rule:
    """How the change of an operator follows from the versions of its children."""

    delta: Callable[..., Operator]
    kind: Kind


RULES: Mapping[type[Operator], Rule] = {
    Filter: Rule(filter_delta, Kind.LINEAR),
    Project: Rule(project_delta, Kind.LINEAR),
    UnionAll: Rule(union_all_delta, Kind.LINEAR),
    Join: Rule(join_delta, Kind.BILINEAR),
    Aggregate: Rule(aggregate_delta, Kind.KEYED),
    Distinct: Rule(distinct_delta, Kind.KEYED),
}


def kind_of(op: Operator) -> Kind:
    """The kind of an operator's rule; an aggregate without keys depends on all rows."""
    if isinstance(op, Scan):
        return Kind.LINEAR
    if isinstance(op, Aggregate) and not op.keys:
        return Kind.WHOLE
    return RULES[type(op)].kind


def versions_of(op: Operator, changed: frozenset[RelationId]) -> Versions:
    """Both versions of a tree and its delta, if only these sources have changed."""
    if isinstance(op, Scan):
        return scan_versions(op, is_changed=op.source.relation in changed)
    children = [versions_of(child, changed) for child in op.children]
    old = with_children(op, tuple(child.old for child in children))
    new = with_children(op, tuple(child.new for child in children))
    if all(child.delta is None for child in children):
        return Versions(old, new, None)
    return Versions(old, new, RULES[type(op)].delta(op, *children))


def with_children(op: Operator, children: tuple[Operator, ...]) -> Operator:
    """The same operator over other children."""
    if isinstance(op, (Filter, Project, Aggregate, Distinct)):
        (child,) = children
        return replace(op, child=child)
    if isinstance(op, Join):
        left, right = children
        return replace(op, left=left, right=right)
    if isinstance(op, UnionAll):
        return replace(op, arms=children)
    raise TypeError(type(op).__name__)
