"""Expressions of a query: trees of PostgreSQL's SQL over columns that have one name in the whole plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from pgtrickle.plan.expressions.dialect import to_sql, to_sql_once


@dataclass(frozen=True, eq=False)
class Expression:
    """A scalar expression; two are equal if their SQL is."""

    node: exp.Expr

    @cached_property
    def sql(self) -> str:
        """The expression for PostgreSQL, its columns by their quoted plan names."""
        return to_sql(self.node)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The plan names of the columns it reads."""
        return frozenset(column.name for column in self.node.find_all(exp.Column))

    @property
    def column(self) -> str | None:
        """The column's name if the expression is nothing but a column."""
        bare = self.node.unnest()
        return bare.name if isinstance(bare, exp.Column) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.sql == other.sql

    def __hash__(self) -> int:
        return hash(self.sql)

    def __str__(self) -> str:
        return readable(self.node)

    def over(self, place: Callable[[str], str]) -> str:
        """The expression as SQL with each column replaced by the SQL that `place` gives for it."""

        if isinstance(self.node, exp.Column):
            return place(self.node.name)

        def replace(node: exp.Expr) -> exp.Expr:
            return exp.Var(this=place(node.name)) if isinstance(node, exp.Column) else node

        return to_sql_once(self.node.transform(replace))

    def substitute(self, columns: Mapping[str, Expression]) -> Expression:
        """The expression with columns replaced by expressions."""
        if not self.columns & columns.keys():
            return self

        def replace(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.name in columns:
                return _enclose(columns[node.name].node.copy())
            return node

        return Expression(self.node.transform(replace))


def _enclose(node: exp.Expr) -> exp.Expr:
    is_closed = isinstance(node, (exp.Column, exp.Literal, exp.Func, exp.Paren)) and not isinstance(
        node, exp.Cast
    )
    return node if is_closed else exp.Paren(this=node)


def column(name: str) -> Expression:
    """A reference to a plan column."""
    return Expression(exp.Column(this=exp.to_identifier(name, quoted=True)))


def raw(sql: str) -> exp.Expr:
    """SQL of ours as a node, generated as it stands."""
    return exp.Var(this=sql)


def is_null(node: exp.Expr) -> bool:
    """Whether the expression is the constant null, of whatever type."""
    bare = node.unnest()
    return isinstance(bare, exp.Null) or (isinstance(bare, exp.Cast) and is_null(bare.this))


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition that must all hold."""
    node = condition.node.unnest()
    if isinstance(node, exp.And):
        yield from conjuncts(Expression(node.left))
        yield from conjuncts(Expression(node.right))
    else:
        yield Expression(node)


def all_of(conditions: tuple[Expression, ...]) -> Expression | None:
    """The condition that all of these hold; none for no conditions."""
    if not conditions:
        return None
    return Expression(exp.and_(*(c.node.copy() for c in conditions), copy=False))


def readable(node: exp.Expr) -> str:
    """The expression as people write it, for explain: plan names without quotes."""

    def plain(part: exp.Expr) -> exp.Expr:
        return exp.Var(this=part.name) if isinstance(part, exp.Column) else part

    return to_sql_once(node.unnest().transform(plain))
