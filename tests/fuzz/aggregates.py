"""Aggregates drawn from a table of forms; `{1}` in a form repeats its first value."""

from __future__ import annotations

import re
from typing import Final

from tests.fuzz.drawing import Draw, Scope
from tests.fuzz.expressions import condition, value

AGGREGATES: Final[dict[str, str]] = {
    "count(*)": "big",
    "count({int})": "big",
    "count({text})": "big",
    "count(distinct {int})": "big",
    "count(distinct {text})": "big",
    "count(distinct {wide})": "big",
    "sum({int})": "big",
    "sum({big})": "wide",
    "sum({num})": "wide",
    "sum({wide})": "wide",
    "sum({real})": "real",
    "sum(distinct {int})": "big",
    "avg({int})": "wide",
    "avg({num})": "wide",
    "min({int})": "int",
    "max({int})": "int",
    "min({text})": "text",
    "max({num})": "num",
    "max({wide})": "wide",
    "min({date})": "date",
    "max({stamp})": "stamp",
    "max({code})": "code",
    "sum({span})": "span",
    "min({span})": "span",
    "count(distinct {code})": "big",
    "count(distinct {span})": "big",
    "bool_and({bool})": "bool",
    "bool_or({bool})": "bool",
    "string_agg({text}, ',' order by {1})": "text",
    "string_agg(distinct {text}, ',' order by {1})": "text",
    "string_agg({text}, '' order by {int} desc, {1})": "text",
    "array_agg({int} order by {1})": "ints",
    "array_agg({text} order by {int} nulls first, {1} desc)": "any",
    "jsonb_agg({int} order by {1})": "json",
    "stddev({int})": "wide",
    "var_pop({num})": "wide",
    "bit_or({int})": "int",
    "percentile_disc(0.5) within group (order by {int})": "int",
    "mode() within group (order by {text})": "text",
}
_RARE: Final = ("stddev", "var_pop", "bit_or", "percentile", "mode", "jsonb_agg", "array_agg({text}")
_WEIGHTS: Final = {form: 0.4 if form.startswith(_RARE) else 1.0 for form in AGGREGATES} | {"count(*)": 4.0}

_HOLE = re.compile(r"\{(\w+)\}")


def aggregate(draw: Draw, scope: Scope, kind: str | None = None) -> tuple[str, str]:
    """A call over columns of the query itself, and the kind of its value."""
    kinds = {"1", "bool", *scope.own.values()}
    forms = {one: weight for one, weight in _WEIGHTS.items() if kind in {None, AGGREGATES[one]}}
    fitting = {one: forms[one] for one in forms if kinds.issuperset(_HOLE.findall(one))}
    form = draw.weighted(fitting or forms)
    filled: list[str] = []

    def fill(hole: re.Match[str]) -> str:
        if hole[1] == "1":
            return filled[0]
        filled.append(value(draw, hole[1], scope.alone, fuel=1))
        return filled[-1]

    call = _HOLE.sub(fill, form)
    if draw.chance(0.2):
        call += f" filter (where {condition(draw, scope.alone, fuel=1)})"
    return call, AGGREGATES[form]
