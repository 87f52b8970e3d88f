"""Draws what operators are made of: scans, scalars, conditions, calls and orders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import sqlglot
from hypothesis import strategies as st

from pgtrickle.model.source import PgType, Source
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Call, Column, Operator, Ordering, Project, Scan, ScanColumn, WindowCall
from tests.laws.groups import ordered_by
from tests.laws.sources import BIGINT, BOOLEAN, INTEGER


class Names:
    """Names that are unique in one plan."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def fresh(self, wish: str) -> str:
        """A name that begins as wished."""
        return f"{wish}{next(self._numbers)}"

    def column(self, wish: str, type_: PgType = BIGINT) -> Column:
        """A column of a name that begins as wished."""
        return Column(self.fresh(wish), type_, carrier_of(type_))


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
    """A scan of one of the sources."""
    condition = draw(st.sampled_from([*[None] * 6, "{a} = 1", "not ({a} < {b})", "{b} < now()"]))
    extra = draw(st.sampled_from([*[None] * 4, "{a} + {b}", "coalesce({b}, 1)"]))
    return scan(draw(st.sampled_from(sources)), names, condition, extra)


def integers(op: Operator) -> list[str]:
    """The columns that are numbers."""
    return [c.name for c in op.columns if c.type is not BOOLEAN]


@st.composite
def scalars(draw: st.DrawFn, op: Operator) -> Expression:
    """A number over the operator's columns: most often just a column."""
    names = integers(op)
    if not names:
        return expression("1")
    one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    forms = ['"{0}"', '"{0}"', '"{0}"', '"{0}"', '"{0}" + "{1}"', 'coalesce("{0}", 1)']
    return expression(draw(st.sampled_from(forms)).format(one, other))


@st.composite
def conditions(draw: st.DrawFn, op: Operator) -> Expression:
    """A condition over the operator's columns; one about a mark if there is any."""
    marks = [c.name for c in op.columns if c.type is BOOLEAN]
    if draw(st.booleans()) and marks:
        about = draw(st.sampled_from(['"{0}"', 'not "{0}"', '"{0}" is null']))
        return expression(about.format(draw(st.sampled_from(marks))))
    names = integers(op)
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
    """These expressions under fresh names."""
    columns = tuple(result(op, e, names.fresh("p")) for e in made)
    return Project(op, columns, tuple(made))


def call(function: str, argument: Expression | None, names: Names, like: Column | None = None) -> Call:
    """A call of an exact aggregate; `argument` of a count is the condition to count by."""
    if function == "count":
        text = f"count(*) filter (where {argument.sql})" if argument else "count(*)"
    elif function == "count_distinct":
        text = f"count(distinct {argument.sql if argument else ''})"
    else:
        text = f"{function}({argument.sql if argument else ''})"
    made = names.column("c", like.type if like else BIGINT)
    carrier = decimal(BIGINT, 0) if function == "sum" else made.carrier
    return Call(Column(made.name, made.type, carrier), expression(text), function, argument)


@st.composite
def calls(draw: st.DrawFn, op: Operator, names: Names, has_distinct: bool = True) -> Call:
    """One of the aggregates that Spark may compute."""
    functions = ["count", "count", "sum", "min", "max", "bool_and", "bool_or"]
    function = draw(st.sampled_from(functions + ["count_distinct"] * has_distinct))
    if function.startswith("bool"):
        return call(function, draw(conditions(op)), names, Column("", BOOLEAN, carrier_of(BOOLEAN)))
    if function == "count":
        return call("count", draw(st.one_of(st.none(), conditions(op))), names)
    argument = draw(scalars(op))
    return call(function, argument, names, result(op, argument, "") if function in {"min", "max"} else None)


@st.composite
def orders(draw: st.DrawFn, op: Operator) -> tuple[Ordering, ...]:
    """An order by some of the columns."""
    names = draw(st.lists(st.sampled_from(integers(op)), unique=True, max_size=2)) if integers(op) else []
    return tuple(Ordering(name, draw(st.booleans()), draw(st.booleans())) for name in names)


def total(op: Operator, order: tuple[Ordering, ...]) -> tuple[Ordering, ...]:
    """The order made one in which only equal rows are equal, so that there is one answer."""
    named = {o.column for o in order}
    return order + tuple(Ordering(c.name, False, False) for c in op.columns if c.name not in named)


@st.composite
def window_calls(draw: st.DrawFn, op: Operator, partition: tuple[str, ...], names: Names) -> WindowCall:
    """A window function over the partition."""
    listed = ", ".join(f'"{name}"' for name in partition)
    by = f"partition by {listed} " if partition else ""
    order = draw(orders(op))
    form = draw(st.sampled_from(["count(*)", "sum({0})", "max({0})", "rank()", "row_number()"]))
    ordered = ordered_by(total(op, order) if form == "row_number()" else order)
    text = f"{form.format(draw(scalars(op)).sql)} over ({by}{ordered})"
    return WindowCall(names.column("w"), expression(text))
