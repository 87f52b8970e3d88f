"""The relations of a FROM clause while it is read: what they offer, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from pgtrickle.plan.analysis.block import Domain, Outputs, Surroundings
from pgtrickle.plan.analysis.disjunctions import is_true
from pgtrickle.plan.analysis.join_order import join_tree
from pgtrickle.plan.analysis.row_order import NO_ORDER, RowOrder, order_of_several
from pgtrickle.plan.analysis.scope import Scope, has_subquery
from pgtrickle.plan.analysis.subqueries import Attachments
from pgtrickle.plan.expressions import Expression, conjuncts
from pgtrickle.plan.operators import Operator, Values


@dataclass(slots=True)
class Relations:
    """Relations that are all inner-joined by conditions.

    `deferred` are conditions with subqueries in them, which need all relations joined first;
    `visible` are the columns in the order in which a name of the whole join would list them;
    `domain` is one of the relations, if the block is evaluated for the values of one; `order` is the
    one in which the rows arrive.
    """

    scope: Scope
    leaves: list[Operator] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    deferred: list[exp.Expr] = field(default_factory=list)
    visible: Outputs = ()
    domain: Domain | None = None
    order: RowOrder = NO_ORDER

    def take_domain(self) -> Domain | None:
        """The domain, if its rows are still a relation of their own here; they no longer are then."""
        domain, self.domain = self.domain, None
        if domain is None or not any(leaf is domain.operator for leaf in self.leaves):
            return None
        self.leaves = [leaf for leaf in self.leaves if leaf is not domain.operator]
        self.conditions = [c for c in self.conditions if c not in domain.conditions]
        return domain

    def place(self, domain: Domain | None) -> None:
        """Make the domain one of the relations."""
        if domain is not None:
            self.domain = domain
            self.leaves.append(domain.operator)
            self.conditions.extend(domain.conditions)

    def order_beside(self, right: Relations) -> RowOrder:
        """The order of these rows joined with those of `right`: theirs, if there is nothing else here."""
        is_alone = all(self.domain is not None and leaf is self.domain.operator for leaf in self.leaves)
        return right.order if is_alone else order_of_several([self.order, right.order])

    def add_condition(self, node: exp.Expr) -> None:
        """Let only rows through for which the condition, of ON or WHERE, is true."""
        for part in _parts(node):
            if has_subquery(part):
                self.deferred.append(part)
            else:
                resolved = self.scope.resolve(part)
                self.conditions.extend(c for c in conjuncts(resolved) if not is_true(c))

    def join_all(self, surroundings: Surroundings) -> tuple[Operator, tuple[Expression, ...]]:
        """The relations as one operator, and the conditions that also read a surrounding query."""
        leaves = self.leaves or [Values("", ())]
        names = frozenset[str]().union(*(leaf.names for leaf in leaves))
        inner = [c for c in self.conditions if c.columns <= names]
        outer = [c for c in self.conditions if not c.columns <= names]
        operator = join_tree(leaves, inner, surroundings.context)
        if not self.deferred:
            return operator, tuple(outer)
        attachments = Attachments(operator, self.scope, surroundings)
        for node in self.deferred:
            attachments.keep(node)
        return attachments.operator, (*outer, *attachments.correlated)

    def collapse(self, surroundings: Surroundings) -> Operator:
        """Join the relations now; what reads a surrounding query is left as a condition."""
        operator, correlated = self.join_all(surroundings)
        self.leaves, self.conditions, self.deferred = [operator], list(correlated), []
        return operator


def _parts(node: exp.Expr) -> list[exp.Expr]:
    bare = node.unnest()
    return [*_parts(bare.left), *_parts(bare.right)] if isinstance(bare, exp.And) else [bare]
