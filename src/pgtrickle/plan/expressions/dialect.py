"""PostgreSQL's SQL as we parse and write it: functions keep the names they came with.

sqlglot knows many functions by meaning and writes them by another name (`variance` becomes
`var_samp`). We need few of them by meaning, so all others stay calls of whatever they are called.
"""

from __future__ import annotations

from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.generators.postgres import PostgresGenerator

from pgtrickle.plan.expressions.reading import CanonicalParser, CanonicalTokenizer
from pgtrickle.plan.expressions.syntax import WRITERS, WordedCall

_CLOSED = (
    exp.Column, exp.Literal, exp.Paren, exp.Anonymous, exp.Cast, exp.AggFunc, exp.Coalesce, exp.Nullif,
    exp.Array, exp.Boolean, exp.Null, WordedCall,
)  # fmt: skip
"""What a cast can follow without parentheses."""


class CanonicalDialect(Postgres):
    """The dialect of PostgreSQL's own canonical text."""

    NORMALIZE_FUNCTIONS = False
    # subscripts are written as they are read
    INDEX_OFFSET = 0

    Tokenizer = CanonicalTokenizer
    Parser = CanonicalParser

    class Generator(PostgresGenerator):
        """Writes casts and types as PostgreSQL does, so that people recognise what they wrote."""

        TYPE_MAPPING: ClassVar = {**PostgresGenerator.TYPE_MAPPING, exp.DType.DECIMAL: "numeric"}
        TRANSFORMS: ClassVar = {**PostgresGenerator.TRANSFORMS, **WRITERS}

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            value = self.sql(expression, "this")
            if not isinstance(expression.this, _CLOSED):
                value = f"({value})"
            return f"{value}::{self.sql(expression, 'to')}"

        def any_sql(self, expression: exp.Any) -> str:
            return f"ANY {self._parenthesise(expression)}"

        def all_sql(self, expression: exp.All) -> str:
            return f"ALL {self._parenthesise(expression)}"

        def _parenthesise(self, expression: exp.Any | exp.All) -> str:
            """The operand, which must stand in parentheses whatever it is."""
            operand = self.sql(expression, "this")
            return operand if isinstance(expression.this, (exp.Paren, exp.Subquery)) else f"({operand})"

        def array_sql(self, expression: exp.Array) -> str:
            if is_array_of_query(expression):
                return f"ARRAY({self.sql(expression.expressions[0])})"
            return f"ARRAY[{self.expressions(expression, flat=True)}]"

        def windowspec_sql(self, expression: exp.WindowSpec) -> str:
            if expression.args.get("end"):
                return super().windowspec_sql(expression)
            start = f"{self.sql(expression, 'start')} {self.sql(expression, 'start_side')}".rstrip()
            exclude = self.sql(expression, "exclude")
            kept = f" EXCLUDE {exclude}" if exclude else ""
            return f"{self.sql(expression, 'kind')} {start}{kept}"

        def tablealias_sql(self, expression: exp.TableAlias) -> str:
            if expression.this is None and expression.columns:
                # the columns that ROWS FROM defines for a call have no name in common
                return f"({self.expressions(expression, key='columns', flat=True)})"
            return super().tablealias_sql(expression)

        def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
            alias = self.sql(expression, "using_alias")
            return super().join_sql(expression, join_op) + (f" AS {alias}" if alias else "")

        def datatype_sql(self, expression: exp.DataType) -> str:
            name = super().datatype_sql(expression)
            return name if '"' in name else name.lower()


def is_array_of_query(node: exp.Expr) -> bool:
    """Whether the node is `ARRAY(SELECT …)`; in `ARRAY[(SELECT …)]` the query stands in parentheses."""
    first = node.expressions[0] if isinstance(node, exp.Array) and node.expressions else None
    return isinstance(first, exp.Query) and not isinstance(first, exp.Subquery)


def parse_or_none(text: str) -> exp.Expr | None:
    """The text as a tree; None if our parser cannot read it."""
    try:
        tree = sqlglot.parse_one(text, dialect=CanonicalDialect)
    except SqlglotError:
        return None
    return _correct_tree(tree)


def _correct_tree(tree: exp.Expr) -> exp.Expr:
    """The tree with what the parser takes for something else, also inside of one another."""
    for node in reversed(list(tree.walk())):
        meant = _with_rows(_with_quantifier(_with_negation(node)))
        if node is tree:
            return meant
        if meant is not node:
            node.replace(meant)
    return tree


def _with_negation(node: exp.Expr) -> exp.Expr:
    """`x IS NOT TRUE` as one test, like `x IS NOT NULL`; the parser makes it `NOT x IS TRUE`."""
    test = node.this if isinstance(node, exp.Not) else None
    if isinstance(test, exp.Is) and isinstance(test.expression, exp.Boolean):
        return exp.Is(this=test.this, expression=test.expression, negate=True)
    return node


def _with_quantifier(node: exp.Expr) -> exp.Expr:
    """`ALL (array)` as a quantifier, like `ANY (array)`; the parser makes it a call of a function."""
    if isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.lower() == "all":
        (array,) = node.expressions
        return exp.All(this=exp.Paren(this=array))
    return node


def _with_rows(node: exp.Expr) -> exp.Expr:
    """`x IN (VALUES …)` with a query, if its rows read columns; the parser makes it a list of one value."""
    rows = node.expressions[0] if isinstance(node, exp.In) and node.expressions else None
    if isinstance(rows, exp.Values) and rows.find(exp.Column):
        return exp.In(this=node.this, query=exp.Subquery(this=rows))
    return node


def to_sql(node: exp.Expr) -> str:
    """The tree as text for PostgreSQL."""
    return node.sql(dialect=CanonicalDialect)


def to_sql_once(node: exp.Expr) -> str:
    """The same for a tree that is not used afterwards: writing it may change it."""
    return node.sql(dialect=CanonicalDialect, copy=False)
