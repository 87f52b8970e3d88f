"""The operators of relational algebra, one file each, as frozen values."""

from pgtrickle.plan.operators.aggregate import Aggregate, Call, GroupKey
from pgtrickle.plan.operators.distinct import Distinct
from pgtrickle.plan.operators.evaluated import Evaluated
from pgtrickle.plan.operators.filter import Filter
from pgtrickle.plan.operators.join import Join
from pgtrickle.plan.operators.leaf import Answer, InputLeaf, Leaf, Nothing
from pgtrickle.plan.operators.mark import Mark
from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.outer_join import OuterJoin
from pgtrickle.plan.operators.project import Project
from pgtrickle.plan.operators.recursive import Itself, Recursive
from pgtrickle.plan.operators.scan import Scan, ScanColumn
from pgtrickle.plan.operators.set_operation import SetKind, SetOperation
from pgtrickle.plan.operators.single import MORE_THAN_ONE_ROW, Single
from pgtrickle.plan.operators.table_function import TableFunction
from pgtrickle.plan.operators.threshold import COMPARISONS, Threshold
from pgtrickle.plan.operators.top import Ordering, Top
from pgtrickle.plan.operators.union_all import UnionAll
from pgtrickle.plan.operators.values import Values
from pgtrickle.plan.operators.window import Window, WindowCall

__all__ = [
    "COMPARISONS",
    "MORE_THAN_ONE_ROW",
    "Aggregate",
    "Answer",
    "Call",
    "Column",
    "Distinct",
    "Evaluated",
    "Filter",
    "GroupKey",
    "InputLeaf",
    "Itself",
    "Join",
    "Leaf",
    "Mark",
    "Nothing",
    "Operator",
    "Ordering",
    "OuterJoin",
    "Project",
    "Recursive",
    "Scan",
    "ScanColumn",
    "SetKind",
    "SetOperation",
    "Single",
    "TableFunction",
    "Threshold",
    "Top",
    "UnionAll",
    "Values",
    "Window",
    "WindowCall",
]
