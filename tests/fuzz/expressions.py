"""Values and conditions drawn from tables of forms; `{int}` in a form stands for a value of that kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tests.fuzz.drawing import Draw, Scope
from tests.fuzz.tables import TYPES, VALUES

FORMS: Final[dict[str, tuple[str, ...]]] = {
    "int": (
        "{int} + {int}",
        "{int} - 1",
        "{int} * 2",
        "{int} % 2",
        "- {int}",
        "abs({int})",
        "coalesce({int}, {int})",
        "nullif({int}, {int})",
        "greatest({int}, {int})",
        "length({text})",
        "case when {bool} then {int} else {int} end",
        "case {int} when 1 then {int} when 2 then 0 end",
        "cardinality({ints})",
        "jsonb_array_length({json})",
    ),
    "big": ("{big} + 1", "{int}::bigint", "coalesce({big}, {int})", "{big} - {int}"),
    "num": ("({num} + {num})::numeric(8,2)", "coalesce({num}, 0)", "- {num}"),
    "wide": ("{wide} + {num}", "{wide} * 2", "round({wide}, 2)", "{int} * 0.5", "coalesce({wide}, {int})"),
    "real": ("{real} * 2", "coalesce({real}, 0)", "{int}::float8 / 2"),
    "text": (
        "{text} || {text}",
        "upper({text})",
        "coalesce({text}, '?')",
        "substr({text}, 1, 1)",
        "{int}::text",
        "case when {bool} then {text} end",
        "nullif({text}, {text})",
        "replace({text}, 'a', 'b')",
        "{code}::text",
        "{text} || {code}",
    ),
    "date": ("{date} + {int}", "coalesce({date}, date '2024-01-01')", "{stamp}::date"),
    "stamp": ("date_trunc('day', {stamp})", "{stamp} + interval '1 day'", "{stamp} - {span}"),
    "code": ("coalesce({code}, 'b')", "case when {bool} then {code} end"),
    "span": ("{span} + {span}", "coalesce({span}, interval '1 day')", "{span} * 2"),
    "ints": ("array[{int}, {int}]", "{ints} || {int}"),
    "json": ("{json} || '[0]'::jsonb",),
    "bool": (
        "{int} = {int}",
        "{int} <> {int}",
        "{int} < {int}",
        "{int} >= {int}",
        "{big} > {int}",
        "{num} < {num}",
        "{wide} <= {num}",
        "{real} > {real}",
        "{text} = {text}",
        "{text} <> {text}",
        "{text} like 'a%'",
        "{date} < {date}",
        "{stamp} >= {stamp}",
        "{code} = {code}",
        "{code} < {code}",
        "{span} = {span}",
        "{span} > {span}",
        "{int} is null",
        "{text} is not null",
        "{int} in (1, 2)",
        "{int} not in (0, {int})",
        "{int} between 1 and {int}",
        "{int} is distinct from {int}",
        "{text} is not distinct from {text}",
        "({int}, {text}) = ({int}, {text})",
        "{int} = any ({ints})",
        "{int} <> all ({ints})",
        "{int} < any ({ints})",
        "({int}, {text}) in (values (1, 'a'), (2, null))",
        "{int} not in (values (1), (2))",
        "{bool} is not true",
        "{bool} is false",
        "not {bool}",
        "{bool} and {bool}",
        "{bool} or {bool}",
        "coalesce({bool}, {bool})",
        "case when {bool} then {bool} else {bool} end",
    ),
}

SIMPLE: Final = (
    "{int} = {int}",
    "{int} < {int}",
    "{int} is null",
    "{text} = {text}",
    "{text} is not null",
    "{num} > {num}",
    "{big} is not null",
)
"""Conditions that stand where a boolean column is missing."""

SUBQUERIES: Final[dict[str, tuple[str, ...]]] = {
    "bool": (
        "exists {rows:int}",
        "exists {rows:int}",
        "not exists {rows:int}",
        "not exists {rows:int}",
        "{int} in {rows:int}",
        "{text} in {rows:text}",
        "{int} not in {rows:int}",
        "{text} not in {rows:text}",
        "({int}, {int}) in {rows:int,int}",
        "({int}, {text}) in {rows:int,text}",
        "({int}, {text}, {int}) in {rows:int,text,int}",
        "{code} in {rows:code}",
        "{span} not in {rows:span}",
        "{date} = any {rows:date}",
        "({int}, {text}) not in {rows:int,text}",
        "({int}, {int}) not in {rows:int,int}",
        "{int} = any {rows:int}",
        "{int} > any {rows:int}",
        "{int} < all {rows:int}",
        "{int} <> all {rows:int}",
        "{num} >= all {rows:num}",
        "{int} = {scalar:int}",
        "{int} <> {scalar:int}",
        "{int} < {scalar:int}",
        "{big} >= {scalar:big}",
        "{wide} <= {scalar:wide}",
        "{text} = {scalar:text}",
        "{bool} or exists {rows:int}",
        "{bool} or {int} not in {rows:int}",
        "case when {bool} then exists {rows:int} else {int} in {rows:int} end",
    ),
    "int": ("{scalar:int}", "{scalar:int} + {int}", "coalesce({scalar:int}, -1)"),
    "big": ("{scalar:big}", "coalesce({scalar:big}, 0)"),
    "wide": ("{scalar:wide}", "{scalar:wide} - {int}"),
    "text": ("{scalar:text}", "{text} || {scalar:text}"),
}

_HOLE = re.compile(r"\{(\w+)(?::([\w,]+))?\}")


def value(draw: Draw, kind: str, scope: Scope, *, fuel: int = 2) -> str:
    """SQL of one kind; `fuel` bounds how far forms stand in forms."""
    if fuel > 0 and scope.depth > 0 and kind in SUBQUERIES and draw.chance(0.12):
        return _filled(draw, form(draw, SUBQUERIES[kind], scope), scope, fuel - 1)
    if fuel > 0 and kind in FORMS and draw.chance(0.85 if kind == "bool" else 0.22):
        return _filled(draw, form(draw, FORMS[kind], scope), scope, fuel - 1)
    found = _named(draw, kind, scope)
    if found is None and kind == "bool" and draw.chance(0.9):
        return _filled(draw, form(draw, SIMPLE, scope), scope, 0)
    return found or literal(draw, kind)


def condition(draw: Draw, scope: Scope, *, fuel: int = 2) -> str:
    """Something that is true, false or NULL, and most often reads a column."""
    if scope.depth > 0 and draw.chance(0.35):
        return _filled(draw, form(draw, SUBQUERIES["bool"], scope), scope, fuel - 1)
    return _filled(draw, form(draw, FORMS["bool"], scope), scope, fuel - 1)


def literal(draw: Draw, kind: str) -> str:
    if kind not in VALUES or draw.chance(0.08):
        return f"null::{TYPES.get(kind, 'text')}"
    text = draw.choice(VALUES[kind])
    if kind == "text":
        return f"{text}::text"
    return f"({text})" if text.startswith("-") else text


def column(draw: Draw, kind: str, scope: Scope) -> str:
    """A column of the query itself, or something else of that kind where it has none."""
    own = [name for name, found in scope.own.items() if found == kind]
    return draw.choice(own) if own else literal(draw, kind)


def form(draw: Draw, forms: Iterable[str], scope: Scope) -> str:
    """A form, most often one whose kinds there are columns for: constants alone find little."""
    kinds = {"bool", *scope.own.values(), *scope.outer.values()}
    fitting = [one for one in forms if all(hole[2] or hole[1] in kinds for hole in _HOLE.finditer(one))]
    return draw.choice(fitting) if fitting and draw.chance(0.95) else draw.choice(list(forms))


def _named(draw: Draw, kind: str, scope: Scope) -> str | None:
    """A column of that kind, most often one of the query itself."""
    own = [name for name, found in scope.own.items() if found == kind]
    outer = [name for name, found in scope.outer.items() if found == kind]
    if outer and (not own or draw.chance(0.3)):
        return draw.choice(outer)
    return draw.choice(own) if own and draw.chance(0.85) else None


def _filled(draw: Draw, chosen: str, scope: Scope, fuel: int) -> str:
    """A form with values in it, no two of them the same if that can be had: nothing is less than itself."""
    filled: list[str] = []

    def fill(hole: re.Match[str]) -> str:
        kinds = (hole[2] or "").split(",")
        if hole[1] == "rows":
            return f"({draw.nested(draw, scope, kinds)})"
        if hole[1] == "scalar":
            return f"({draw.scalar(draw, scope, kinds)})"
        found = value(draw, hole[1], scope, fuel=fuel)
        for _ in range(3):
            if found in filled:
                found = value(draw, hole[1], scope, fuel=fuel)
        filled.append(found)
        return found

    return f"({_HOLE.sub(fill, chosen)})"
