"""Which expressions can be null, and which conditions reject a null."""

from __future__ import annotations

from collections.abc import Callable, Set

from sqlglot import exp

from pgtrickle.plan.expressions.expression import Expression, conjuncts

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
QUANTIFIERS = (exp.Any, exp.All)

_STRICT = (
    *COMPARISONS, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Paren, exp.Cast,
    exp.Not, exp.Like, exp.ILike, exp.Extract, exp.Between,
)  # fmt: skip
"""Null as soon as any of their operands is."""

_STRICT_FUNCTIONS = frozenset(
    {
        "lower", "upper", "length", "char_length", "btrim", "ltrim", "rtrim", "substr", "substring", "abs",
        "round", "floor", "ceil", "ceiling", "trunc", "sign", "mod", "power", "sqrt", "date_trunc",
        "date_part", "to_char", "to_date", "replace", "split_part", "left", "right", "md5", "strpos",
        "reverse", "timezone", "jsonb_typeof", "jsonb_array_length", "array_length", "cardinality", "age",
    }
)  # fmt: skip

_TEXT_FUNCTIONS = frozenset(
    {"lower", "upper", "btrim", "ltrim", "rtrim", "substr", "to_char", "left", "right"}
)


def is_strict(node: exp.Expr, names: Set[str], texts: Set[str] = frozenset()) -> bool:
    """Whether the value is surely null when all columns of these names are null.

    `texts` are columns that are known to be texts.
    """
    if isinstance(node, exp.Column):
        return node.name in names
    if isinstance(node, exp.Between):
        return is_strict(node.this, names, texts)
    if isinstance(node, exp.In):
        return not node.args.get("query") and is_strict(node.this, names, texts)
    if isinstance(node, COMPARISONS) and isinstance(node.expression, QUANTIFIERS):
        return _is_strict_over_elements(node.this, node.expression.this.unnest(), names, texts)
    if isinstance(node, exp.DPipe):
        # an array takes a null in as an element
        parts = (node.this, node.expression)
        return _is_text(node, texts) and any(is_strict(part, names, texts) for part in parts)
    is_known = isinstance(node, exp.Anonymous) and node.name.lower() in _STRICT_FUNCTIONS
    if isinstance(node, _STRICT) or is_known:
        return any(
            is_strict(part, names, texts)
            for part in node.iter_expressions()
            if not isinstance(part, exp.DataType)
        )
    return False


def _is_strict_over_elements(value: exp.Expr, array: exp.Expr, names: Set[str], texts: Set[str]) -> bool:
    """The same of a value compared with elements: where there are none, also null has an answer."""
    has_elements = isinstance(array, exp.Array) and bool(array.expressions)
    is_flat = not any(part.find(exp.Array) for part in array.expressions)
    return is_strict(array, names, texts) or (has_elements and is_flat and is_strict(value, names, texts))


def _is_text(node: exp.Expr, texts: Set[str]) -> bool:
    """Whether the value is surely a text, and no array."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name in texts
    if isinstance(node, exp.DPipe):
        return _is_text(node.this, texts) and _is_text(node.expression, texts)
    is_function = isinstance(node, exp.Anonymous) and node.name.lower() in _TEXT_FUNCTIONS
    return is_function or (isinstance(node, exp.Cast) and node.to.is_type("text", "varchar"))


def rejects_nulls(node: exp.Expr, names: Set[str], texts: Set[str] = frozenset()) -> bool:
    """Whether the condition is surely not true when all columns of these names are null."""
    node = node.unnest()
    if isinstance(node, exp.And):
        return rejects_nulls(node.left, names, texts) or rejects_nulls(node.right, names, texts)
    if isinstance(node, exp.Or):
        return rejects_nulls(node.left, names, texts) and rejects_nulls(node.right, names, texts)
    if isinstance(node, exp.Not):
        test = node.this.unnest()
        if isinstance(test, exp.Is):
            is_null_test = isinstance(test.expression, exp.Null) and not test.args.get("negate")
            return is_null_test and is_strict(test.this, names, texts)
        return is_strict(test, names, texts)
    if isinstance(node, exp.Is):
        if isinstance(node.expression, exp.Null):
            return bool(node.args.get("negate")) and is_strict(node.this, names, texts)
        is_true = isinstance(node.expression, exp.Boolean) and not node.args.get("negate")
        return is_true and is_strict(node.this, names, texts)
    return is_strict(node, names, texts)


def excludes_null(condition: Expression | None, name: str) -> bool:
    """Whether the condition is true only where the column is not null."""
    return condition is not None and any(rejects_nulls(c.node, {name}) for c in conjuncts(condition))


def can_be_null(expression: Expression, is_nullable: Callable[[str], bool]) -> bool:
    """Whether an expression can be null, given which columns can."""
    node = expression.node.unnest()
    if isinstance(node, exp.Column):
        return is_nullable(node.name)
    if isinstance(node, (exp.Literal, exp.Boolean)):
        return False
    if isinstance(node, exp.Cast) and isinstance(node.this.unnest(), (exp.Literal, exp.Cast, exp.Column)):
        return can_be_null(Expression(node.this), is_nullable)
    if isinstance(node, exp.Coalesce):
        return all(can_be_null(Expression(part), is_nullable) for part in [node.this, *node.expressions])
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, *COMPARISONS)):
        return any(can_be_null(Expression(part), is_nullable) for part in (node.left, node.right))
    return True
