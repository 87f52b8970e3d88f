"""Set-returning calls that surely return few rows."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from pgtrickle.plan.expressions.constants import constant_number

_MOST_STEPS: Final = 100_000
"""A series between two constants that has no more steps than this is short enough to be read whole."""
_BOUNDED: Final = frozenset(
    {
        "generate_subscripts",
        "json_array_elements",
        "json_array_elements_text",
        "json_each",
        "json_each_text",
        "json_object_keys",
        "json_populate_recordset",
        "json_to_recordset",
        "jsonb_array_elements",
        "jsonb_array_elements_text",
        "jsonb_each",
        "jsonb_each_text",
        "jsonb_object_keys",
        "jsonb_path_query",
        "jsonb_populate_recordset",
        "jsonb_to_recordset",
        "regexp_matches",
        "regexp_split_to_table",
        "string_to_table",
        "unnest",
    }
)
"""Functions that return no more rows than their argument has parts."""


def is_bounded(call: exp.Expr) -> bool:
    """Whether a set-returning function surely returns few rows: for each part of a value at most one."""
    node = call.unnest()
    if isinstance(node, exp.Alias):
        return is_bounded(node.this)
    if isinstance(node, exp.Select):
        # a call that is taken apart into the fields of its rows
        source = node.args["from_"].this
        return not source.args.get("db") and is_bounded(source.this)
    if isinstance(node, exp.Anonymous):
        match node.name.lower():
            case "rows from":
                return all(is_bounded(part) for part in node.expressions)
            case "generate_series":
                return _is_short([constant_number(given) for given in node.expressions])
            case name:
                return name in _BOUNDED
    # a function with a schema may be user-defined; those that the parser knows are PostgreSQL's
    return not isinstance(node, exp.Dot)


def _is_short(given: list[str | None]) -> bool:
    """Whether a series from one number to another has few steps."""
    numbers = [float(digits) for digits in given if digits is not None]
    if len(numbers) < len(given) or len(numbers) < 2:
        return False
    first, last, step = (*numbers, 1.0)[:3]
    return step != 0 and abs((last - first) / step) <= _MOST_STEPS
