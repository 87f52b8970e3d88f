"""Whether a query makes arrays from text while it runs."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from pgtrickle.plan.expressions.dialect import parse_or_none


def makes_arrays(queries: Iterable[str]) -> bool:
    """Whether one of the queries casts something other than a constant to an array, as far as can be seen."""
    trees = [parse_or_none(query) for query in queries]
    return any(tree is None or any(map(_is_cast_to_array, tree.find_all(exp.Cast))) for tree in trees)


def _is_cast_to_array(cast: exp.Cast) -> bool:
    return cast.to.sql(dialect="postgres").endswith("]") and not isinstance(cast.this.unnest(), exp.Literal)
