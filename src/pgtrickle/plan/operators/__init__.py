"""The operators of relational algebra, one file each, as frozen values."""

from pgtrickle.plan.operators.aggregate import Aggregate, Call, GroupKey
from pgtrickle.plan.operators.change import Change
from pgtrickle.plan.operators.distinct import Distinct
from pgtrickle.plan.operators.filter import Filter
from pgtrickle.plan.operators.input import Input
from pgtrickle.plan.operators.join import Join
from pgtrickle.plan.operators.negate import Negate
from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.past import Past
from pgtrickle.plan.operators.project import Project
from pgtrickle.plan.operators.scan import Scan, ScanColumn
from pgtrickle.plan.operators.semijoin import SemiJoin
from pgtrickle.plan.operators.union_all import UnionAll

__all__ = [
    "Aggregate",
    "Call",
    "Change",
    "Column",
    "Distinct",
    "Filter",
    "GroupKey",
    "Input",
    "Join",
    "Negate",
    "Operator",
    "Past",
    "Project",
    "Scan",
    "ScanColumn",
    "SemiJoin",
    "UnionAll",
]
