"""Draws sources, windows of changes, and operator trees over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import sqlglot
from hypothesis import strategies as st

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import (
    Aggregate,
    Call,
    Column,
    Distinct,
    Filter,
    GroupKey,
    Join,
    Operator,
    Project,
    Scan,
    ScanColumn,
    UnionAll,
)
from tests.laws.zsets import Row, World, ZSet

INTEGER = PgType("integer", "integer", "b", "N")
BIGINT = PgType("bigint", "bigint", "b", "N")
BOOLEAN = PgType("boolean", "boolean", "b", "B")

values = st.sampled_from([1, None, 0])


def source(number: int, columns: str = "abc", keys: tuple[tuple[str, ...], ...] = ()) -> Source:
    """A table of nullable integers."""
    described = tuple(SourceColumn(name, i + 1, INTEGER, True) for i, name in enumerate(columns))
    name = RelationName("public", f"t{number}")
    return Source(RelationId(number), name, SourceKind.TABLE, described, keys, keys)


SOURCES = tuple(source(number) for number in (1, 2, 3))


def worlds(sources: Sequence[Source] = SOURCES) -> st.SearchStrategy[World]:
    """Every source before and after a window; what is deleted was there."""
    rows = [st.tuples(*(values for _ in s.columns)) for s in sources]
    windows = [
        st.tuples(st.lists(r, min_size=2, max_size=5), st.lists(r, max_size=2), st.sampled_from([1, 0, 6]))
        for r in rows
    ]
    return st.tuples(*windows).map(lambda drawn: _world(sources, drawn))


def _world(sources: Sequence[Source], drawn: Sequence[tuple[list[Row], list[Row], int]]) -> World:
    old: dict[RelationId, ZSet] = {}
    new: dict[RelationId, ZSet] = {}
    for table, (before, inserted, deleted) in zip(sources, drawn, strict=True):
        old[table.relation] = Counter(before)
        kept = [row for i, row in enumerate(before) if not (deleted >> i) & 1]
        new[table.relation] = Counter(kept + inserted)
    return World(old, new)


@dataclass
class Names:
    """Names that are unique in one plan."""

    def __post_init__(self) -> None:
        self._numbers = count(1)

    def fresh(self, wish: str) -> str:
        return f"{wish}{next(self._numbers)}"


def expression(text: str) -> Expression:
    """An expression from SQL over quoted column names."""
    return Expression(sqlglot.parse_one(text, dialect="postgres"))


def scan(table: Source, names: Names, condition: str | None = None, extra: str | None = None) -> Scan:
    """A scan with all columns; `{a}` in the texts stands for the plan's name of column a."""
    alias = names.fresh("x")
    given = tuple(f"{alias}.{c.name}" for c in table.columns)
    places = {c.name: f'"{name}"' for c, name in zip(table.columns, given, strict=True)}
    outputs = [ScanColumn(Column(name, INTEGER, carrier_of(INTEGER)), column(name)) for name in given]
    if extra:
        made = Column(f"{alias}.extra", INTEGER, carrier_of(INTEGER))
        outputs.append(ScanColumn(made, expression(extra.format(**places))))
    kept = expression(condition.format(**places)) if condition else None
    return Scan(table, alias, given, tuple(outputs), kept)


@st.composite
def scans(draw: st.DrawFn, names: Names, sources: Sequence[Source]) -> Scan:
    condition = draw(st.sampled_from([None, None, None, "{a} = 1", "not ({a} < {b})"]))
    extra = draw(st.sampled_from([None, None, "{a} + {b}", "coalesce({b}, 1)"]))
    return scan(draw(st.sampled_from(sources)), names, condition, extra)


def _integers(op: Operator) -> list[str]:
    return [c.name for c in op.columns if c.type is not BOOLEAN]


@st.composite
def scalars(draw: st.DrawFn, op: Operator) -> Expression:
    """A number over the operator's columns: most often just a column."""
    names = _integers(op)
    if not names:
        return expression("1")
    one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    forms = ['"{0}"', '"{0}"', '"{0}"', '"{0}" + "{1}"', 'coalesce("{0}", 1)', '"{0}" * 2']
    return expression(draw(st.sampled_from(forms)).format(one, other))


@st.composite
def conditions(draw: st.DrawFn, op: Operator) -> Expression:
    """A condition over the operator's columns."""
    names = _integers(op)
    if not names:
        return expression("true")
    one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    forms = [
        '"{0}" = "{1}"',
        '"{0}" < "{1}"',
        '"{0}" is null',
        'not ("{0}" = 0)',
        '"{0}" = 1 or "{1}" is null',
        '"{0}" <> 2 and not ("{1}" is null)',
    ]
    return expression(draw(st.sampled_from(forms)).format(one, other))


def result(op: Operator, made: Expression, name: str) -> Column:
    """The column for an expression over the operator, in the form the analysis gives it."""
    if made.column is not None:
        same = op.column(made.column)
        return Column(name, same.type, same.carrier)
    return Column(name, BIGINT, carrier_of(BIGINT))


def project(op: Operator, made: Sequence[Expression], names: Names) -> Project:
    columns = tuple(result(op, e, names.fresh("p")) for e in made)
    return Project(op, columns, tuple(made))


def call(function: str, argument: Expression | None, names: Names, type_: PgType = BIGINT) -> Call:
    """A call of an exact aggregate; `argument` of a count is the condition to count by."""
    text = f"{function}({argument.sql if argument else '*'})"
    carrier = decimal(type_, 0) if function == "sum" else carrier_of(type_)
    return Call(Column(names.fresh("c"), type_, carrier), expression(text), function, argument)


@st.composite
def calls(draw: st.DrawFn, op: Operator, names: Names) -> Call:
    function = draw(st.sampled_from(["count", "count", "sum", "min", "max", "bool_and", "bool_or"]))
    if function.startswith("bool"):
        return call(function, draw(conditions(op)), names, BOOLEAN)
    if function == "count":
        return call("count", draw(st.one_of(st.none(), conditions(op))), names)
    argument = draw(scalars(op))
    shape = result(op, argument, "")
    made = call(function, argument, names)
    if function in {"min", "max"}:
        return Call(Column(made.column.name, shape.type, shape.carrier), *_rest(made))
    return made


def _rest(made: Call) -> tuple[Expression, str | None, Expression | None]:
    return made.expression, made.function, made.argument


@st.composite
def trees(
    draw: st.DrawFn, names: Names | None = None, depth: int = 3, sources: Sequence[Source] = SOURCES
) -> Operator:
    """A tree of at most this many operators above its scans."""
    names = names or Names()
    below = (
        st.integers(0, depth - 1).flatmap(lambda less: trees(names, less, sources)) if depth else st.nothing()
    )
    kinds = ["filter", "project", "join", "join", "union", "distinct", "group", "group"]
    match draw(st.sampled_from(kinds)) if depth else "scan":
        case "scan":
            return draw(scans(names, sources))
        case "filter":
            child = draw(below)
            return Filter(child, draw(conditions(child)))
        case "project":
            child = draw(below)
            return project(child, draw(st.lists(scalars(child), min_size=1, max_size=3)), names)
        case "join":
            return draw(joins(draw(below), draw(below)))
        case "union":
            return draw(unions(draw(below), draw(below), names))
        case "distinct":
            return Distinct(draw(below))
        case _:
            return draw(groups(draw(below), names))


@st.composite
def joins(draw: st.DrawFn, left: Operator, right: Operator) -> Join:
    pairs = [(a, b) for a in _integers(left) for b in _integers(right)]
    on = draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)) if pairs else []
    plain = Join(left, right, tuple(on))
    condition = draw(conditions(plain)) if draw(st.integers(0, 2)) == 2 else None
    return Join(left, right, plain.on, condition)


@st.composite
def unions(draw: st.DrawFn, left: Operator, right: Operator, names: Names) -> UnionAll:
    """Both arms cut to columns of one type, as PostgreSQL demands of them."""
    width = draw(st.integers(1, 2))
    arms = []
    for arm in (left, right):
        made = [draw(scalars(arm)) for _ in range(width)]
        wide = tuple(Column(names.fresh("u"), BIGINT, carrier_of(BIGINT)) for _ in made)
        arms.append(Project(arm, wide, tuple(expression(f"({e.sql}) + 0") for e in made)))
    return UnionAll(tuple(arms))


@st.composite
def groups(draw: st.DrawFn, child: Operator, names: Names) -> Aggregate:
    keys = draw(st.lists(scalars(child), max_size=2))
    made = draw(st.lists(calls(child, names), max_size=2))
    if not keys and not made:
        made = [call("count", None, names)]
    grouped = tuple(GroupKey(result(child, key, names.fresh("k")), key) for key in keys)
    return Aggregate(child, grouped, tuple(made))
