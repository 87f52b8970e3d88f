"""Window functions whose values do not depend on how PostgreSQL breaks ties.

Functions that see the position of a row all share one window whose order is total, up to rows that
are equal in every column; the others may have any window, since peers get equal values.
"""

from __future__ import annotations

from typing import Final

from tests.fuzz.drawing import Draw, Scope
from tests.fuzz.expressions import form, value

POSITIONAL: Final = {
    "row_number()": "big",
    "ntile(2)": "int",
    "lag({int})": "int",
    "lag({text}, 2, '-')": "text",
    "lead({int})": "int",
    "lead({num}, 1, 0)": "num",
    "first_value({text})": "text",
    "last_value({int})": "int",
    "nth_value({int}, 2)": "int",
}
RANKING: Final = {
    "rank()": "big",
    "dense_rank()": "big",
    # thirds do not add up exactly in every order
    "percent_rank()": "any",
    "cume_dist()": "any",
}
AGGREGATING: Final = {
    "sum({int})": "big",
    "count(*)": "big",
    "count({text})": "big",
    "avg({int})": "wide",
    "min({int})": "int",
    "max({num})": "num",
    "sum({wide})": "wide",
    "bool_or({bool})": "bool",
    "count(*) filter (where {bool})": "big",
    "max({span})": "span",
}
_BOUNDS: Final = (
    "unbounded preceding and current row",
    "1 preceding and current row",
    "1 preceding and 1 following",
    "current row and unbounded following",
    "2 preceding and 1 preceding",
    "unbounded preceding and unbounded following",
)
_EXCLUDED: Final = ("", "", "", "", " exclude current row", " exclude group", " exclude ties")


def windowed(draw: Draw, scope: Scope, total: list[str]) -> tuple[dict[str, str], str]:
    """Some calls with their kinds, and the WINDOW clause that they share; `total` tells rows apart."""
    name = draw.name("w")
    clause = f"{name} as ({_partition(draw, scope)}{_total_order(draw, total)})"
    calls: dict[str, str] = {}
    for _ in range(draw.randint(1, 3)):
        call, kind = _call(draw, scope, name)
        calls[call] = kind
    used = any(name in call for call in calls)
    return calls, f" window {clause}" if used else ""


def _call(draw: Draw, scope: Scope, total: str) -> tuple[str, str]:
    family = draw.weighted({"positional": 3.0, "ranking": 2.0, "framed": 2.0, "peers": 3.0})
    if family == "positional":
        chosen = form(draw, POSITIONAL, scope)
        return f"{_filled(draw, chosen, scope)} over {total}", POSITIONAL[chosen]
    if family == "ranking":
        chosen = draw.weighted(dict.fromkeys(RANKING, 1.0) | {"rank()": 3.0, "dense_rank()": 2.0})
        order = f"order by {value(draw, draw.choice(['int', 'text']), scope.alone, fuel=1)}"
        return f"{chosen} over ({_partition(draw, scope)}{order}{_direction(draw)})", RANKING[chosen]
    chosen = form(draw, AGGREGATING, scope)
    call, kind = _filled(draw, chosen, scope), AGGREGATING[chosen]
    if family == "framed":
        frame = f"rows between {draw.choice(_BOUNDS)}{draw.choice(_EXCLUDED)}"
        return f"{call} over ({total} {frame})", kind
    return f"{call} over ({_partition(draw, scope)}{_peers(draw, scope)})", kind


def _peers(draw: Draw, scope: Scope) -> str:
    """An order and a frame by which peers share everything."""
    if draw.chance(0.3):
        return ""
    order = f"order by {value(draw, 'int', scope.alone, fuel=1)}{_direction(draw)}"
    if draw.chance(0.4):
        return order
    return (
        f"{order} {draw.choice(['range', 'groups'])} between {draw.choice(_BOUNDS)}{draw.choice(_EXCLUDED)}"
    )


def _partition(draw: Draw, scope: Scope) -> str:
    if draw.chance(0.35):
        return ""
    kinds = draw.some(["int", "text"], 1, 2 if draw.chance(0.2) else 1)
    keys = [value(draw, kind, scope.alone, fuel=1) for kind in kinds]
    return f"partition by {', '.join(keys)} "


def _total_order(draw: Draw, total: list[str]) -> str:
    names = draw.sample(total, len(total))
    return "order by " + ", ".join(f"{name}{_direction(draw)}" for name in names)


def _direction(draw: Draw) -> str:
    return draw.weighted({"": 4.0, " desc": 1.0, " nulls first": 0.5, " desc nulls last": 0.5})


def _filled(draw: Draw, chosen: str, scope: Scope) -> str:
    for kind in ("int", "text", "num", "wide", "bool", "span"):
        hole = f"{{{kind}}}"
        if hole in chosen:
            return chosen.replace(hole, value(draw, kind, scope.alone, fuel=1))
    return chosen
