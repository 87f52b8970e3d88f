"""Refuses what may never end, below something that PostgreSQL answers without reading all of it.

PostgreSQL stops a recursion, and a set-returning function in a select list, as soon as LIMIT, EXISTS, IN or
ANY has enough rows. Whatever we read of such a query by itself (a part, a state, either end of a window) has
no such stop, so it might run for ever. Therefore the query is kept whole, with its LIMIT: PostgreSQL
recomputes it. What surely ends, and what PostgreSQL too has to read to its end, is followed.
"""

from __future__ import annotations

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.properties import conditions_of
from pgtrickle.plan.refusals import refuse
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.rule import READ_TO_THE_END, EarlyStop


def require_end(op: Operator, stop: EarlyStop = READ_TO_THE_END) -> None:
    """Refuse a tree that reads more than PostgreSQL would of something that may never end."""
    rule = RULES[type(op)]
    if stop != READ_TO_THE_END:
        part = rule.endless_part(op, conditions_of)
        if part is not None:
            raise refuse(f"{part}, below LIMIT, EXISTS, IN or ANY,")
    for child, below in zip(op.children, rule.early_stops(op, stop), strict=True):
        require_end(child, below)
