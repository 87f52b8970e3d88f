"""Draws operator trees over the sources: bare ones, and ones of which PostgreSQL evaluates parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from pgtrickle.model.source import Source
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import (
    COMPARISONS,
    Aggregate,
    Distinct,
    Evaluated,
    Filter,
    GroupKey,
    Itself,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    SetKind,
    SetOperation,
    Single,
    TableFunction,
    Threshold,
    Top,
    UnionAll,
    Values,
    Window,
)
from tests.laws.parts import (
    Names,
    call,
    calls,
    conditions,
    expression,
    integers,
    orders,
    project,
    result,
    scalars,
    scan,
    scans,
    total,
    window_calls,
)
from tests.laws.sources import BOOLEAN, INTEGER, ONE_ROW, SOURCES

ONLY_IN_POSTGRES = (Window, Top, TableFunction, Recursive)

On = tuple[tuple[str, str], ...]


@st.composite
def trees(draw: st.DrawFn, size: int = 4, sources: Sequence[Source] = SOURCES) -> Operator:
    """A tree of at most this many operators above its leaves, parts of it evaluated by PostgreSQL."""
    return draw(placements(draw(bare_trees(Names(), draw(st.integers(0, size)), sources))))


@st.composite
def placements(draw: st.DrawFn, op: Operator) -> Operator:
    """The tree with some parts evaluated by PostgreSQL, and all that Spark has no word for."""
    if isinstance(op, ONLY_IN_POSTGRES) or draw(st.sampled_from([False] * 7 + [True])):
        return Evaluated(op, "it was drawn")
    return op.with_children(tuple(draw(placements(child)) for child in op.children))


@st.composite
def bare_trees(draw: st.DrawFn, names: Names, size: int, sources: Sequence[Source] = SOURCES) -> Operator:
    """A tree of exactly this many operators above its leaves."""
    if size == 0:
        return draw(leaves(names, sources))
    kind = draw(st.sampled_from(_DRAWN))
    if kind in UNARY:
        return draw(UNARY[kind](draw(bare_trees(names, size - 1, sources)), names))
    less = draw(st.integers(0, size - 1))
    left = draw(bare_trees(names, less, sources))
    return draw(BINARY[kind](left, draw(bare_trees(names, size - 1 - less, sources)), names))


@st.composite
def leaves(draw: st.DrawFn, names: Names, sources: Sequence[Source] = SOURCES) -> Operator:
    """A scan, or seldom rows that the query spells out."""
    if draw(st.integers(0, 15)) < 15:
        return draw(scans(names, sources))
    rows = draw(st.lists(st.sampled_from(["(1, null)", "(0, 1)", "(null, 2)"]), min_size=1, max_size=2))
    return Values(f"values {', '.join(rows)}", (names.column("v", INTEGER), names.column("v", INTEGER)))


@st.composite
def filters(draw: st.DrawFn, child: Operator, names: Names) -> Operator:
    return Filter(child, draw(conditions(child)))


@st.composite
def projects(draw: st.DrawFn, child: Operator, names: Names) -> Operator:
    made = draw(st.lists(scalars(child), min_size=1, max_size=3))
    made += [column(c.name) for c in child.columns if c.type is BOOLEAN and draw(st.booleans())]
    return project(child, made, names)


def distincts(child: Operator, names: Names) -> st.SearchStrategy[Operator]:
    return st.just(Distinct(child))


@st.composite
def groups(draw: st.DrawFn, child: Operator, names: Names, has_distinct: bool = True) -> Aggregate:
    keys = draw(st.lists(scalars(child), max_size=2))
    made = draw(st.lists(calls(child, names, has_distinct), max_size=2))
    if not keys and not made:
        made = [call("count", None, names)]
    grouped = tuple(GroupKey(result(child, key, names.fresh("k")), key) for key in keys)
    return Aggregate(child, grouped, tuple(made))


@st.composite
def singles(draw: st.DrawFn, child: Operator, names: Names) -> Operator:
    """Rows that are often single by what is below: groups by their keys, distinct rows by all columns."""
    if isinstance(child, (Aggregate, Distinct)) or draw(st.booleans()):
        return Single(child, tuple(draw(st.lists(st.sampled_from(_names(child)), unique=True))))
    below = draw(st.one_of(groups(child, names), distincts(child, names)))
    keys = [k.column.name for k in below.keys] if isinstance(below, Aggregate) else _names(below)
    return Single(below, tuple(keys))


@st.composite
def windows(draw: st.DrawFn, child: Operator, names: Names) -> Operator:
    partition = draw(partitions(child))
    made = draw(st.lists(window_calls(child, partition, names), min_size=1, max_size=2))
    return Window(child, partition, tuple(made))


@st.composite
def tops(draw: st.DrawFn, child: Operator, names: Names) -> Operator:
    order = draw(orders(child))
    offset, limit = draw(st.sampled_from([(0, 1), (0, 2), (1, 1), (1, None)]))
    has_ties = bool(order) and offset == 0 and draw(st.booleans())
    return Top(
        child, draw(partitions(child)), order if has_ties else total(child, order), limit, offset, has_ties
    )


def partitions(child: Operator) -> st.SearchStrategy[tuple[str, ...]]:
    """Columns to partition by; most often one."""
    if not integers(child):
        return st.just(())
    name = st.sampled_from(integers(child))
    several = st.lists(name, max_size=2, unique=True)
    return st.one_of(st.tuples(name), st.tuples(name), several.map(lambda names: tuple(names)))


@st.composite
def table_functions(draw: st.DrawFn, child: Operator, names: Names) -> Operator:
    has_ordinality = draw(st.booleans())
    made = tuple(names.column("g", INTEGER) for _ in range(1 + has_ordinality))
    text = f"generate_series(1, {draw(scalars(child)).sql})"
    function = TableFunction(child, expression(text), made, has_ordinality, draw(st.booleans()))
    return replace(function, condition=draw(st.none() | conditions(function)))


@st.composite
def matches(draw: st.DrawFn, left: Operator, right: Operator) -> On:
    pairs = [(a, b) for a in integers(left) for b in integers(right)]
    if not pairs:
        return ()
    number = draw(st.sampled_from([1, 1, 1, 2, 0]))
    return tuple(draw(st.lists(st.sampled_from(pairs), max_size=number, unique=True)))


@st.composite
def joins(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> Join:
    op = Join(left, right, draw(matches(left, right)))
    return Join(left, right, op.on, draw(conditions(op)) if draw(st.integers(0, 3)) == 3 else None)


@st.composite
def outer_joins(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> OuterJoin:
    op = draw(joins(left, right, names))
    return OuterJoin(left, right, op.on, op.condition, draw(st.booleans()))


@st.composite
def marks(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> Mark:
    op = draw(joins(left, right, names))
    return Mark(left, right, op.on, op.condition, names.column("m", BOOLEAN))


@st.composite
def thresholds(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> Threshold:
    """Rows beside a source with one row, of which a column, or what is computed of both, is the bound."""
    if not integers(left):
        left = project(left, [draw(scalars(left))], names)
    bound = scan(ONE_ROW, names, extra=draw(st.sampled_from([None, "{a} + {b}"])))
    return Threshold(
        left,
        bound,
        draw(st.sampled_from(integers(left))),
        draw(st.sampled_from(COMPARISONS)),
        bound.columns[-1].name,
    )


@st.composite
def arms(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> tuple[Operator, Operator]:
    """Both sides as they are if they are alike, or else cut to columns of one number."""
    if _types(left) == _types(right) and draw(st.booleans()):
        return left, right
    width = draw(st.integers(1, 2))
    cut = [project(arm, [draw(scalars(arm)) for _ in range(width)], names) for arm in (left, right)]
    return cut[0], cut[1]


@st.composite
def unions(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> UnionAll:
    return UnionAll(draw(arms(left, right, names)))


@st.composite
def set_operations(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> SetOperation:
    one, other = draw(arms(left, right, names))
    return SetOperation(one, other, draw(st.sampled_from(SetKind)), draw(st.booleans()))


@st.composite
def recursions(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> Recursive:
    """From the rows of the left along those of the right: each row once, or a step or two."""
    is_all = draw(st.booleans())
    counter = [expression("0")] if is_all else []
    base = project(left, [draw(scalars(left)), draw(scalars(left)), *counter], names)
    name = names.fresh("r")
    itself = Itself(name, tuple(names.column("i", c.type) for c in base.columns))
    own = [c.name for c in itself.columns[:2]]
    met: Operator = Join(itself, right, tuple((own[1], b) for b in integers(right)[:1]))
    shown = [column(draw(st.sampled_from([*own, *integers(right)]))) for _ in own]
    if is_all:
        count = itself.columns[2].name
        met = Filter(met, expression(f'"{count}" < {draw(st.integers(1, 2))}'))
        shown.append(expression(f'"{count}" + 1'))
    columns = tuple(names.column("r", c.type) for c in base.columns)
    return Recursive(base, project(met, shown, names), name, columns, is_all)


def _names(op: Operator) -> list[str]:
    return [c.name for c in op.columns]


def _types(op: Operator) -> list[str]:
    return [c.type.text for c in op.columns]


UNARY: Mapping[type[Operator], Callable[[Operator, Names], st.SearchStrategy[Operator]]] = {
    Filter: filters,
    Project: projects,
    Distinct: distincts,
    Aggregate: groups,
    Single: singles,
    Window: windows,
    Top: tops,
    TableFunction: table_functions,
}

BINARY: Mapping[type[Operator], Callable[[Operator, Operator, Names], st.SearchStrategy[Operator]]] = {
    Join: joins,
    OuterJoin: outer_joins,
    Mark: marks,
    Threshold: thresholds,
    UnionAll: unions,
    SetOperation: set_operations,
    Recursive: recursions,
}

_DRAWN: list[type[Operator]] = [*UNARY, *BINARY, Filter, Join, Join, Join, Aggregate, OuterJoin, Mark]
