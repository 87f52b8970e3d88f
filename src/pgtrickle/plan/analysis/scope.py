"""Which columns a FROM clause offers, and what each stands for in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.dialect import written
from pgtrickle.plan.expressions import Expression


@dataclass(slots=True)
class Scope:
    """The relations of one FROM clause by alias, each with its columns as plan expressions."""

    relations: dict[str, Mapping[str, Expression]] = field(default_factory=dict)

    def column(self, reference: exp.Column) -> Expression:
        """What a column reference stands for."""
        name = reference.name
        if reference.table:
            offered = self.relations.get(reference.table, {})
            if name in offered:
                return offered[name]
            raise refuse(f"the reference {written(reference)}")
        return self.unqualified(name)

    def unqualified(self, name: str) -> Expression:
        """What a bare name stands for; it must be in one relation only."""
        found = [offered[name] for offered in self.relations.values() if name in offered]
        if len(found) != 1:
            raise refuse(f"the reference {name}")
        return found[0]

    def first(self, name: str) -> Expression:
        """What a name stands for in the first relation that has it."""
        for offered in self.relations.values():
            if name in offered:
                return offered[name]
        raise refuse(f"the reference {name}")

    def resolve(self, node: exp.Expr) -> Expression:
        """The expression with all references replaced by plan columns."""
        for part in node.walk():
            if isinstance(part, (exp.Query, exp.Exists)):
                raise refuse("a subquery inside an expression")
            if isinstance(part, exp.Star) and not isinstance(part.parent, exp.Count):
                raise refuse("a reference to a whole row")

        def replace(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column):
                replacement = self.column(part).node.copy()
                is_column = isinstance(replacement, exp.Column)
                return replacement if is_column else exp.Paren(this=replacement)
            return part

        return Expression(node.copy().transform(replace))
