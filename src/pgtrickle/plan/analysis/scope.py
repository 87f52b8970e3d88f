"""Which columns a FROM clause offers, and what each stands for in the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.refusals import refuse

WHOLE_ROW = "*"
"""The name under which a relation offers its whole row, if a query refers to it."""


@dataclass(slots=True)
class Scope:
    """The relations of one FROM clause by alias, each with its columns as plan expressions.

    `merged` are the columns that USING made of two. What is not found here is looked for in the
    `outer` scope; `translate` says what becomes of each column that is found.
    """

    relations: dict[str, Mapping[str, Expression]] = field(default_factory=dict)
    merged: dict[str, Expression] = field(default_factory=dict)
    outer: Scope | None = None
    translate: Callable[[Expression], Expression] | None = None

    def column(self, reference: exp.Column) -> Expression:
        """What a column reference stands for."""
        found = self.find(reference)
        if found is None and isinstance(reference.this, exp.Star):
            raise refuse("a reference to the whole row of this relation")
        if found is None:
            raise refuse(f"the reference {to_sql(reference)}")
        return found

    def find(self, reference: exp.Column) -> Expression | None:
        """What a column reference stands for here or further out; None if nothing has it."""
        found = self._own(reference)
        if found is None and self.outer is not None:
            found = self.outer.find(reference)
        return self.translate(found) if found is not None and self.translate else found

    def find_named(self, reference: exp.Column) -> Expression | None:
        """What a reference stands for if its relation is named, or if its bare name is a merged one."""
        if reference.table or reference.name in self.merged:
            return self.find(reference)
        return None

    def _own(self, reference: exp.Column) -> Expression | None:
        name = reference.name
        if reference.table:
            return self.relations.get(reference.table, {}).get(name)
        if name in self.merged:
            return self.merged[name]
        found = [offered[name] for offered in self.relations.values() if name in offered]
        if len(found) > 1:
            raise refuse(f"the reference {name}")
        return found[0] if found else None

    def relation_of(self, reference: exp.Column) -> str | None:
        """The relation here whose column the reference is; none if it is no column of just one."""
        if not reference.table and reference.name in self.merged:
            return None
        names = [reference.table] if reference.table else list(self.relations)
        found = [name for name in names if reference.name in self.relations.get(name, {})]
        return found[0] if len(found) == 1 else None

    def has(self, reference: exp.Column) -> bool:
        """Whether the reference is to one of the relations here."""
        return self._own(reference) is not None

    def resolve(self, node: exp.Expr) -> Expression:
        """The expression, which has no subqueries, with all references replaced by plan columns."""
        return Expression(node.copy().transform(self.resolve_node))

    def resolve_node(self, part: exp.Expr) -> exp.Expr:
        """A column reference as what it stands for; other nodes as they are."""
        if not isinstance(part, exp.Column):
            return part
        replacement = self.column(part).node.copy()
        return replacement if isinstance(replacement, exp.Column) else exp.Paren(this=replacement)


def has_subquery(node: exp.Expr) -> bool:
    """Whether the expression has a subquery in it."""
    return any(isinstance(part, (exp.Query, exp.Exists)) for part in node.walk())
