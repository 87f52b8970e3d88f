"""The expressions that Spark evaluates exactly as PostgreSQL does; all others are refused.

The list is short on purpose. Each entry has a test that draws random values for both engines.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from pgtrickle.model.carrier import STRING, DecimalType
from pgtrickle.plan.carriers import INTEGER_DIGITS, MAX_DIGITS, MAX_SCALE, is_integral
from pgtrickle.plan.expressions import Expression, is_null, readable
from pgtrickle.plan.expressions.constants import constant_number, number_size, spark_number
from pgtrickle.plan.operators.operator import Column
from pgtrickle.plan.refusals import refuse

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
    forms = (left.carrier.form, right.carrier.form)
    if any(isinstance(form, DecimalType) for form in forms):
        if STRING in forms:
            return False
        (before, scale), (other, decimals) = column_size(left), column_size(right)
        return max(before, other) + max(scale, decimals) <= MAX_DIGITS
    if len(bases) == 1:
        return True
    if bases <= _TEXTS or bases <= _FLOATS:
        return True
    return is_integral(left.type) and is_integral(right.type)


def column_size(column: Column) -> tuple[int, int]:
    """The most digits before and after the point that a column can have."""
    form = column.carrier.form
    if isinstance(form, DecimalType):
        return form.precision - form.scale, form.scale
    if is_integral(column.type):
        return INTEGER_DIGITS[column.type.base], 0
    raise refuse(f"arithmetic with {column.name} in Spark")


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
        if is_null(node):
            return "null"
        digits = constant_number(node)
        if digits is not None:
            return spark_number(digits)
        if isinstance(node, exp.Cast) and node.to.is_type("text"):
            node = node.this.unnest()
        if isinstance(node, exp.Literal) and node.is_string and not {"'", "\\"} & set(node.this):
            return f"r'{node.this}'"
        return None

    def _is(self, node: exp.Is) -> str:
        if not isinstance(node.expression, (exp.Null, exp.Boolean)):
            raise refuse(readable(node))
        value = self._literal(node.expression)
        word = "is not" if node.args.get("negate") else "is"
        return f"({self.sql(node.this)} {word} {value})"

    def _comparison(self, node: exp.Expr) -> str:
        needs_order = type(node) in _ORDERED
        word = _ORDERED.get(type(node)) or _EQUAL[type(node)]
        left, right = self._kind(node.this, needs_order), self._kind(node.expression, needs_order)
        if left != right and "null" not in (left, right):
            raise refuse(f"{readable(node)}, a comparison of {left} with {right},")
        if left == right == "number":
            self._require_common_size(node, [node.this, node.expression])
        return f"({self.sql(node.this)} {word} {self.sql(node.expression)})"

    def _kind(self, node: exp.Expr, needs_order: bool) -> str:
        """What a side of a comparison is to Spark; sides of one kind compare as in PostgreSQL."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            column = self._columns[node.name]
            if not (column.carrier.ordering if needs_order else column.carrier.equality):
                raise refuse(f"comparing {node.name} of type {column.type.text} in Spark")
            return self._column_kind(column)
        if is_null(node):
            return "null"
        if isinstance(node, exp.Boolean):
            return "boolean"
        if constant_number(node) is not None or type(node) in _ARITHMETIC or isinstance(node, exp.Neg):
            return "number"
        if isinstance(node, (exp.Cast, exp.Literal)) and self._literal(node) is not None and not needs_order:
            return "text"
        raise refuse(f"comparing {readable(node)} in Spark")

    def _column_kind(self, column: Column) -> str:
        if is_integral(column.type) or isinstance(column.carrier.form, DecimalType):
            return "number"
        if column.type.base in _TEXTS:
            return "text"
        return "float" if column.type.base in _FLOATS else column.type.base

    def _arithmetic(self, node: exp.Expr) -> str:
        scales = [self.scale(side) for side in (node.this.unnest(), node.expression.unnest())]
        scale = sum(scales) if isinstance(node, exp.Mul) else max(scales)
        if scale > MAX_SCALE:
            raise refuse(f"{readable(node)}, which has more than {MAX_SCALE} decimals,")
        return f"({self.sql(node.this)} {_ARITHMETIC[type(node)]} {self.sql(node.expression)})"

    def scale(self, node: exp.Expr) -> int:
        """The most decimals the expression can have."""
        return self.size(node)[1]

    def size(self, node: exp.Expr) -> tuple[int, int]:
        """The most digits before and after the point that the expression can have."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            return column_size(self._columns[node.name])
        if type(node) in _ARITHMETIC:
            (before, scale), (other, decimals) = self.size(node.this), self.size(node.expression)
            if isinstance(node, exp.Mul):
                return min(before + other, MAX_DIGITS - scale - decimals), scale + decimals
            most = max(scale, decimals)
            return min(max(before, other) + 1, MAX_DIGITS - most), most
        if isinstance(node, (exp.Case, exp.Coalesce)):
            return self._widest(node)
        digits = constant_number(node)
        if digits is not None:
            return number_size(digits)
        raise refuse(f"arithmetic with {readable(node)} in Spark")

    def _widest(self, node: exp.Case | exp.Coalesce) -> tuple[int, int]:
        sizes = [self.size(value) for value in _values(node) if not is_null(value)]
        return max(before for before, _ in sizes), max(scale for _, scale in sizes)

    def _require_common_size(self, node: exp.Expr, values: list[exp.Expr]) -> None:
        """Refuse numbers that Spark would round to bring them to one size."""
        sizes = [self.size(value) for value in values if not is_null(value)]
        if sizes and max(before for before, _ in sizes) + max(scale for _, scale in sizes) > MAX_DIGITS:
            raise refuse(f"{readable(node)}, whose numbers have more than {MAX_DIGITS} digits together,")

    def _is_number(self, node: exp.Expr) -> bool:
        bare = node.unnest()
        if isinstance(bare, exp.Column):
            return self._column_kind(self._columns[bare.name]) == "number"
        if isinstance(bare, (exp.Case, exp.Coalesce)):
            return any(self._is_number(value) for value in _values(bare))
        return type(bare) in _ARITHMETIC

    def _case(self, node: exp.Case) -> str:
        if any(self._is_number(value) for value in _values(node)):
            self._require_common_size(node, _values(node))
        parts = [f" when {self.sql(b.this)} then {self.sql(b.args['true'])}" for b in node.args["ifs"]]
        default = node.args.get("default")
        tail = f" else {self.sql(default)}" if default is not None else ""
        return f"(case{''.join(parts)}{tail} end)"

    def _coalesce(self, node: exp.Coalesce) -> str:
        values = _values(node)
        if any(self._is_number(value) for value in values):
            self._require_common_size(node, values)
        return f"coalesce({', '.join(self.sql(value) for value in values)})"


def _values(node: exp.Case | exp.Coalesce) -> list[exp.Expr]:
    """What the expression can give."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    default = node.args.get("default")
    return [branch.args["true"] for branch in node.args["ifs"]] + ([default] if default is not None else [])
