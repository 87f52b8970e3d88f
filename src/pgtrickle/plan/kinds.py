"""Of which kind each operator's rule is: what of the change it needs more than the change itself."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Evaluated,
    Filter,
    Itself,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SetOperation,
    Single,
    TableFunction,
    Top,
    UnionAll,
    Values,
    Window,
)


class Kind(Enum):
    """The four kinds of rule."""

    LINEAR = "linear"
    BILINEAR = "bilinear"
    KEYED = "keyed"
    WHOLE = "whole"


_KINDS: Mapping[type[Operator], Kind] = {
    Scan: Kind.LINEAR,
    Values: Kind.LINEAR,
    Itself: Kind.LINEAR,
    Filter: Kind.LINEAR,
    Project: Kind.LINEAR,
    UnionAll: Kind.LINEAR,
    TableFunction: Kind.LINEAR,
    Join: Kind.BILINEAR,
    OuterJoin: Kind.KEYED,
    Mark: Kind.KEYED,
    Aggregate: Kind.KEYED,
    Distinct: Kind.KEYED,
    SetOperation: Kind.KEYED,
    Window: Kind.KEYED,
    Top: Kind.KEYED,
    Single: Kind.KEYED,
    Recursive: Kind.WHOLE,
}


def kind_of(op: Operator) -> Kind:
    """The kind of an operator's rule; one without keys depends on all rows."""
    if isinstance(op, Evaluated):
        return kind_of(op.child)
    has_no_key = (
        (isinstance(op, Aggregate) and not op.keys)
        or (isinstance(op, (Window, Top)) and not op.partition)
        or (isinstance(op, Single) and not op.keys)
        or (isinstance(op, (Mark, OuterJoin)) and not op.on)
    )
    return Kind.WHOLE if has_no_key else _KINDS[type(op)]
