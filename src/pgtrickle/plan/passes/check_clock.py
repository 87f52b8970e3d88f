"""Refuses the clock where it cannot be followed.

A condition of a scan may compare its columns with the clock: rows enter and leave as time passes.
The condition is then evaluated at both ends of the window, each with the clock of that end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.clock import clock_functions, has_age, has_clock
from pgtrickle.plan.operators import Operator, Scan, Values
from pgtrickle.plan.refusals import refuse
from pgtrickle.plan.rules import RULES


def check_clock(op: Operator, outputs: Iterable[Expression]) -> None:
    """Refuse the clock anywhere but in the condition of a scan."""
    for expression in (*outputs, *_expressions(op)):
        if has_clock(expression):
            raise refuse(f"{expression}, which moves with the clock,")
    for part in op.walk():
        if isinstance(part, Values) and clock_functions([part.query]):
            raise refuse(f"{part.query}, which moves with the clock,")


def _expressions(op: Operator) -> Iterator[Expression]:
    for part in op.walk():
        for expression in RULES[type(part)].expressions(part):
            is_followed = isinstance(part, Scan) and expression is part.condition
            if not is_followed or has_age(expression):
                yield expression
