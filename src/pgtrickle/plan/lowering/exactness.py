"""The expressions that Spark evaluates exactly as PostgreSQL does; all others are refused.

The list is short on purpose. Each entry has a test that draws random values for both engines.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.carriers import MAX_SCALE, is_integral
from pgtrickle.plan.expressions import Expression, readable
from pgtrickle.plan.operators.operator import Column

_TEXTS = frozenset({"text", "character varying", "name"})
_FLOATS = frozenset({"real", "double precision"})
_ORDERED: dict[type[exp.Expr], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_EQUAL: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.NEQ: "<>"}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def spark_name(name: str) -> str:
    """An identifier as Spark quotes it."""
    return "`" + name.replace("`", "``") + "`"


def comparable(left: Column, right: Column, *, needs_order: bool) -> bool:
    """Whether Spark compares the two carried columns as PostgreSQL compares their values."""
    for column in (left, right):
        if not (column.carrier.ordering if needs_order else column.carrier.equality):
            return False
    bases = {left.type.base, right.type.base}
    if bases == {"numeric"}:
        return left.carrier.spark.startswith("decimal") == right.carrier.spark.startswith("decimal")
    if len(bases) == 1:
        return True
    if bases <= _TEXTS or bases <= _FLOATS:
        return True
    return is_integral(left.type) and is_integral(right.type)


def require_exact(expression: Expression, columns: Iterable[Column]) -> None:
    """Refuse the query if Spark cannot evaluate the expression exactly."""
    spark_expression(expression, columns)


def spark_expression(expression: Expression, columns: Iterable[Column]) -> str:
    """The expression in Spark's SQL."""
    return _Translation({column.name: column for column in columns}).sql(expression.node)


def spark_scale(expression: Expression, columns: Iterable[Column]) -> int:
    """The decimals of a number that Spark computes."""
    return _Translation({column.name: column for column in columns}).scale(expression.node)


class _Translation:
    """Translates one expression over known columns."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self._columns = columns

    def sql(self, node: exp.Expr) -> str:
        node = node.unnest()
        if isinstance(node, exp.Column):
            return spark_name(node.name)
        if isinstance(node, (exp.And, exp.Or)):
            word = "and" if isinstance(node, exp.And) else "or"
            return f"({self.sql(node.left)} {word} {self.sql(node.right)})"
        if isinstance(node, exp.Not):
            return f"(not {self.sql(node.this)})"
        if isinstance(node, exp.Is):
            return self._is(node)
        if type(node) in _EQUAL or type(node) in _ORDERED:
            return self._comparison(node)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if isinstance(node, exp.Case) and not node.this:
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            return self._coalesce(node)
        literal = self._literal(node)
        if literal is None:
            raise refuse(f"{readable(node)} over several sources")
        return literal

    def _literal(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Boolean):
            return "true" if node.this else "false"
        if isinstance(node, exp.Null):
            return "null"
        if isinstance(node, exp.Cast) and node.to.is_type("text") and isinstance(node.this, exp.Literal):
            node = node.this
        if isinstance(node, exp.Literal):
            if node.is_string:
                return "r'" + node.this + "'" if not {"'", "\\"} & set(node.this) else None
            return node.this if node.this.isdigit() and int(node.this) < 2**31 else None
        if isinstance(node, exp.Neg) and isinstance(node.this.unnest(), exp.Literal):
            inner = self._literal(node.this.unnest())
            return f"(-{inner})" if inner else None
        return None

    def _is(self, node: exp.Is) -> str:
        if not isinstance(node.expression, (exp.Null, exp.Boolean)):
            raise refuse(readable(node))
        value = self._literal(node.expression)
        return f"({self.sql(node.this)} is {value})"

    def _comparison(self, node: exp.Expr) -> str:
        needs_order = type(node) in _ORDERED
        word = _ORDERED.get(type(node)) or _EQUAL[type(node)]
        left, right = self._kind(node.this, needs_order), self._kind(node.expression, needs_order)
        if left != right and "null" not in (left, right):
            raise refuse(f"{readable(node)}, a comparison of {left} with {right},")
        return f"({self.sql(node.this)} {word} {self.sql(node.expression)})"

    def _kind(self, node: exp.Expr, needs_order: bool) -> str:
        """What a side of a comparison is to Spark; sides of one kind compare as in PostgreSQL."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            column = self._columns[node.name]
            if not (column.carrier.ordering if needs_order else column.carrier.equality):
                raise refuse(f"comparing {node.name} of type {column.type.text} in Spark")
            return self._column_kind(column)
        if isinstance(node, exp.Null):
            return "null"
        if isinstance(node, exp.Boolean):
            return "boolean"
        if isinstance(node, exp.Literal) and not node.is_string:
            return "number"
        if type(node) in _ARITHMETIC or isinstance(node, exp.Neg):
            return "number"
        if isinstance(node, (exp.Cast, exp.Literal)) and self._literal(node) is not None and not needs_order:
            return "text"
        raise refuse(f"comparing {readable(node)} in Spark")

    def _column_kind(self, column: Column) -> str:
        if is_integral(column.type) or column.carrier.spark.startswith("decimal"):
            return "number"
        if column.type.base in _TEXTS:
            return "text"
        return "float" if column.type.base in _FLOATS else column.type.base

    def _arithmetic(self, node: exp.Expr) -> str:
        scale = 0
        for side in (node.this.unnest(), node.expression.unnest()):
            scale += self.scale(side)
        if scale > MAX_SCALE:
            raise refuse(f"{readable(node)}, which has more than {MAX_SCALE} decimals,")
        return f"({self.sql(node.this)} {_ARITHMETIC[type(node)]} {self.sql(node.expression)})"

    def scale(self, node: exp.Expr) -> int:
        """The most decimals the expression can have."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            column = self._columns[node.name]
            if is_integral(column.type):
                return 0
            if column.carrier.spark.startswith("decimal"):
                return int(column.carrier.spark.rstrip(")").split(",")[1])
        elif type(node) in _ARITHMETIC:
            return self.scale(node.this) + self.scale(node.expression)
        elif isinstance(node, exp.Literal) and self._literal(node) is not None and not node.is_string:
            return 0
        elif isinstance(node, exp.Case):
            values = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
            return max(
                self.scale(v) for v in values if v is not None and not isinstance(v.unnest(), exp.Null)
            )
        elif isinstance(node, exp.Coalesce):
            return max(self.scale(value) for value in (node.this, *node.expressions))
        raise refuse(f"arithmetic with {readable(node)} in Spark")

    def _case(self, node: exp.Case) -> str:
        parts = [f" when {self.sql(b.this)} then {self.sql(b.args['true'])}" for b in node.args["ifs"]]
        default = node.args.get("default")
        tail = f" else {self.sql(default)}" if default is not None else ""
        return f"(case{''.join(parts)}{tail} end)"

    def _coalesce(self, node: exp.Coalesce) -> str:
        values = [node.this, *node.expressions]
        return f"coalesce({', '.join(self.sql(value) for value in values)})"
