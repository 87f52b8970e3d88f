"""The aggregates: their value over no rows, whether the order of rows matters, and how Spark computes them.

`AGGREGATES` lists PostgreSQL's own by name. What is not listed is user-defined: nothing is known of it, and
PostgreSQL evaluates it. `EXACT` lists the forms that Spark computes exactly from rows with weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol

from sqlglot import exp

from pgtrickle.model.carrier import Carrier, DecimalType
from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of, decimal, is_integral
from pgtrickle.plan.expressions.syntax import WordedCall
from pgtrickle.plan.operators import Call, Column
from pgtrickle.plan.reads import WEIGHT


class OrderEffect(Enum):
    """What the order of the rows does to the value of an aggregate."""

    NONE = "none"
    """The value is the same in any order."""
    LAST_DIGITS = "last digits"
    """The last digits of a float depend on it."""
    ANY_VALUE = "any value"
    """The value depends on it, and any of them is right."""
    SEQUENCE = "sequence"
    """The value holds what was aggregated in this order."""
    UNKNOWN = "unknown"
    """It may depend on it."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One of PostgreSQL's aggregates.

    `exact` names its form in EXACT, if it has one. With `keeps_floats` it gives a float as it was, or none at
    all, so that no digit depends on the order.
    """

    order: OrderEffect
    exact: str | None = None
    is_zero_over_no_rows: bool = False
    keeps_floats: bool = False


_INDIFFERENT: Final = AggregateFunction(OrderEffect.NONE)
_STATISTIC: Final = AggregateFunction(OrderEffect.LAST_DIGITS)
_SEQUENCE: Final = AggregateFunction(OrderEffect.SEQUENCE, keeps_floats=True)
_UNKNOWN: Final = AggregateFunction(OrderEffect.UNKNOWN)

AGGREGATES: Final[Mapping[str, AggregateFunction]] = {
    "count": AggregateFunction(OrderEffect.NONE, "count", is_zero_over_no_rows=True, keeps_floats=True),
    "sum": AggregateFunction(OrderEffect.LAST_DIGITS, "sum"),
    "avg": AggregateFunction(OrderEffect.LAST_DIGITS),
    "min": AggregateFunction(OrderEffect.NONE, "min", keeps_floats=True),
    "max": AggregateFunction(OrderEffect.NONE, "max", keeps_floats=True),
    "bool_and": AggregateFunction(OrderEffect.NONE, "bool_and"),
    "every": AggregateFunction(OrderEffect.NONE, "bool_and"),
    "bool_or": AggregateFunction(OrderEffect.NONE, "bool_or"),
    "any_value": AggregateFunction(OrderEffect.ANY_VALUE),
    "regr_count": AggregateFunction(OrderEffect.NONE, is_zero_over_no_rows=True),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "range_agg", "range_intersect_agg"), _INDIFFERENT),
    **dict.fromkeys(
        ("stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"), _STATISTIC
    ),
    **dict.fromkeys(
        (
            "array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg",
            "xmlagg", "json_arrayagg", "json_objectagg",
        ),
        _SEQUENCE,
    ),
    **dict.fromkeys(
        (
            "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2",
            "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "percentile_cont", "percentile_disc", "mode",
            "json_agg_strict", "jsonb_agg_strict",
        ),
        _UNKNOWN,
    ),
}  # fmt: skip
"""PostgreSQL's aggregates by name. Over no rows each is null, unless its entry says zero."""

_PARSED: Final[Mapping[type[exp.Expr], str]] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.GroupConcat: "string_agg",
}
"""The aggregates that the parser knows by meaning."""


def aggregate_of(call: exp.Expr) -> AggregateFunction | None:
    """The entry of a call, whatever FILTER or WITHIN GROUP it has; None if it is none of PostgreSQL's own."""
    while isinstance(call, (exp.Filter, exp.WithinGroup)):
        call = call.this
    is_named = isinstance(call, (exp.Anonymous, WordedCall))
    name = call.name.lower() if is_named else _PARSED.get(type(call), "")
    return AGGREGATES.get(name)


def is_zero_over_no_rows(call: exp.Expr) -> bool:
    """Whether a call counts, so that over no rows it is zero and not null."""
    found = aggregate_of(call)
    return found is not None and found.is_zero_over_no_rows


class Operand(Enum):
    """What Spark must be able to do with the values that it aggregates."""

    ANYTHING = "anything"
    NUMBER = "number"
    ORDERED = "ordered"
    COMPARED = "compared"


class Slots(Protocol):
    """The state of a group while it is put together: see `targets/merged.py`."""

    def sum_of(self, sql: str, pg_type: str, carrier: Carrier, from_nothing: str) -> str:
        """A slot that adds up `sql` over the rows of a change; its quoted name.

        `from_nothing` is PostgreSQL's SQL for it over all rows of a group.
        """

    def extremum(self, call: Call, operand: str) -> str:
        """A slot that keeps the least or greatest value; its quoted name."""


@dataclass(frozen=True, slots=True)
class ExactAggregate:
    """A form of an aggregate that Spark computes exactly.

    `value` is Spark SQL over rows with weights: the value at the end of the window that has this weight.
    `final` is PostgreSQL's SQL for the value over the slots of a group's state, None where no state can be
    merged. Unless it `counts_copies`, it matters that a row is there, and not how often.
    """

    operand: Operand
    counts_copies: bool
    value: Callable[[Call, str, str], str]
    final: Callable[[Call, str, Slots], str] | None


_BIGINT: Final = carrier_of(PgType("bigint", "bigint", "b", "N"))


def _count(call: Call, operand: str, weight: str) -> str:
    return f"coalesce(sum({_weight_if(operand, weight)}), 0L)"


def _weight_if(condition: str, weight: str) -> str:
    return f"case when {condition} then {weight} else 0L end"


def _weight_if_present(operand: str, weight: str) -> str:
    return f"case when {operand} is null then 0L else {weight} end"


def _final_count(call: Call, operand: str, slots: Slots) -> str:
    return _count_where(call, operand, slots)


def _count_where(call: Call, operand: str, slots: Slots, word: str = "") -> str:
    """A slot that counts the rows whose argument, after the `word`, is true."""
    counted = f"count(*) filter (where {word}({_argument(call)}))"
    return slots.sum_of(_weight_if(f"{word}{operand}", WEIGHT), "bigint", _BIGINT, counted)


def _argument(call: Call) -> str:
    assert call.argument is not None
    return call.argument.sql


def _count_distinct(call: Call, operand: str, weight: str) -> str:
    return f"count(distinct {_if_there(operand, weight)})"


def _if_there(operand: str, weight: str) -> str:
    return f"case when {weight} > 0 then {operand} end"


def _sum(call: Call, operand: str, weight: str) -> str:
    # a sum is null where no value is there, not where those that are there add up to nothing
    total = f"sum(cast({operand} as {call.column.carrier.spark}) * {weight})"
    return f"case when sum({_weight_if_present(operand, weight)}) > 0 then {total} end"


def _final_sum(call: Call, operand: str, slots: Slots) -> str:
    argument = _argument(call)
    present = _weight_if_present(operand, WEIGHT)
    filled = slots.sum_of(present, "bigint", _BIGINT, f"count({argument})")
    carrier = replace(call.column.carrier, pg_type="numeric", restore="({})::numeric")
    weighted = f"cast({operand} as {carrier.spark}) * {WEIGHT}"
    total = slots.sum_of(weighted, "numeric", carrier, f"coalesce(sum({argument}), 0)")
    return f"(case when {filled} > 0 then {total} end)::{call.column.type.text}"


def _of_present_values(call: Call, operand: str, weight: str) -> str:
    return f"{call.function}({_if_there(operand, weight)})"


def _final_extremum(call: Call, operand: str, slots: Slots) -> str:
    return slots.extremum(call, operand)


def _final_bool_and(call: Call, operand: str, slots: Slots) -> str:
    yes, no = _yes_and_no(call, operand, slots)
    return f"(case when {yes} + {no} > 0 then {no} = 0 end)"


def _final_bool_or(call: Call, operand: str, slots: Slots) -> str:
    yes, no = _yes_and_no(call, operand, slots)
    return f"(case when {yes} + {no} > 0 then {yes} > 0 end)"


def _yes_and_no(call: Call, operand: str, slots: Slots) -> tuple[str, str]:
    return _count_where(call, operand, slots), _count_where(call, operand, slots, "not ")


EXACT: Final[Mapping[str, ExactAggregate]] = {
    "count": ExactAggregate(Operand.ANYTHING, True, _count, _final_count),
    "count_distinct": ExactAggregate(Operand.COMPARED, False, _count_distinct, None),
    "sum": ExactAggregate(Operand.NUMBER, True, _sum, _final_sum),
    "min": ExactAggregate(Operand.ORDERED, False, _of_present_values, _final_extremum),
    "max": ExactAggregate(Operand.ORDERED, False, _of_present_values, _final_extremum),
    "bool_and": ExactAggregate(Operand.ANYTHING, False, _of_present_values, _final_bool_and),
    "bool_or": ExactAggregate(Operand.ANYTHING, False, _of_present_values, _final_bool_or),
}
"""The forms that Spark computes. A count whose argument is None counts every row."""


def exact_column(name: str, pg_type: PgType, function: str, operand: Column) -> Column:
    """The column of an exact aggregate over values that travel as `operand` does."""
    match EXACT[function].operand:
        case Operand.ORDERED:
            return Column(name, pg_type, operand.carrier)
        case Operand.NUMBER:
            form = operand.carrier.form
            return Column(name, pg_type, decimal(pg_type, form.scale if isinstance(form, DecimalType) else 0))
        case _:
            return Column(name, pg_type, carrier_of(pg_type))


def fits(function: str, operand: Column) -> bool:
    """Whether Spark has the values in a form that the function is exact on."""
    match EXACT[function].operand:
        case Operand.ORDERED:
            return operand.carrier.ordering
        case Operand.NUMBER:
            return is_integral(operand.type) or isinstance(operand.carrier.form, DecimalType)
        case Operand.COMPARED:
            return operand.carrier.equality
        case Operand.ANYTHING:
            return True
