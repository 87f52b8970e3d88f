"""The table of types: how each PostgreSQL type travels through Spark without loss.

Timestamps and dates travel as integers, which order as they do; infinity is the largest integer.
What Spark has no type for travels as text. `equality` holds where equal values have equal text.
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.carrier import Carrier
from pgtrickle.model.source import PgType

MAX_DIGITS = 38
MAX_SCALE = 6
"""Spark keeps this many decimals of a product whatever its precision; more could be cut."""

_DAY = 86_400_000_000

_NATIVE = {
    "boolean": "boolean",
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double precision": "double",
}
INTEGER_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_TEXT_EQUAL = frozenset(
    {"uuid", "time without time zone", "time with time zone", "inet", "cidr", "macaddr", "macaddr8", "oid"}
)

_DATE = Carrier(
    "date",
    "int",
    "(case when isfinite({}) then {} - date '1970-01-01'"
    " when {} = 'infinity' then 2147483647 when {} = '-infinity' then -2147483648 end)",
    "(case {} when 2147483647 then date 'infinity' when -2147483648 then date '-infinity'"
    " else date '1970-01-01' + {} end)",
    equality=True,
    ordering=True,
)


def _timestamp(pg_type: str, zone: str) -> Carrier:
    """Microseconds since 2000, as PostgreSQL itself counts them: from 1970 its last years do not fit."""
    kind = "timestamptz" if zone else "timestamp"
    return Carrier(
        pg_type,
        "bigint",
        "(case when isfinite({}) then ((extract(epoch from {}) - 946684800) * 1000000)::bigint"
        " when {} = 'infinity' then 9223372036854775807 when {} = '-infinity' then -9223372036854775808 end)",
        f"(case {{}} when 9223372036854775807 then {kind} 'infinity'"
        f" when -9223372036854775808 then {kind} '-infinity'"
        f" else (timestamp '2000-01-01' + div({{}}::numeric, {_DAY})::int * interval '1 day'"
        f" + mod({{}}, {_DAY}) * interval '1 microsecond'){zone} end)",
        equality=True,
        ordering=True,
    )


def carrier_of(pg_type: PgType) -> Carrier:
    """How a value of this type travels when it is compared for equality, or only passed on."""
    base = pg_type.base
    if native := _NATIVE.get(base):
        return Carrier(pg_type.text, native, "({})", _cast(pg_type), True, base != "boolean")
    if base == "date":
        return _retyped(_DATE, pg_type)
    if base == "timestamp without time zone":
        return _retyped(_timestamp(base, ""), pg_type)
    if base == "timestamp with time zone":
        return _retyped(_timestamp(base, " at time zone 'UTC'"), pg_type)
    if base == "numeric":
        # 1.0 and 1.00 are equal, so equal values need equal text
        return Carrier(pg_type.text, "string", "trim_scale({})::text", _cast(pg_type), True, False)
    if base == "bytea":
        return Carrier(pg_type.text, "string", "encode({}, 'hex')", "decode({}, 'hex')", True, False)
    if base in {"text", "character varying", "character", "name"}:
        ordering = pg_type.c_collated and base != "character"
        return Carrier(pg_type.text, "string", "({})::text", _cast(pg_type), pg_type.deterministic, ordering)
    equality = base in _TEXT_EQUAL or pg_type.kind == "e"
    return Carrier(pg_type.text, "string", "({})::text", _cast(pg_type), equality, False)


def verbatim(pg_type: PgType) -> Carrier:
    """How a value travels that Spark never compares: as it is written, with its trailing zeros."""
    if pg_type.base == "numeric":
        return Carrier(pg_type.text, "string", "({})::text", _cast(pg_type), False, False)
    return carrier_of(pg_type)


def decimal(pg_type: PgType, scale: int, digits: int = MAX_DIGITS) -> Carrier:
    """How a `numeric` of known scale travels when Spark computes with it."""
    size = f"({min(digits, MAX_DIGITS)},{scale})"
    return Carrier(pg_type.text, f"decimal{size}", f"({{}})::numeric{size}", _cast(pg_type), True, True)


def unmodified(pg_type: PgType) -> PgType:
    """The type without length, precision or scale."""
    # a plain `character` is one letter long
    text = "bpchar" if pg_type.base == "character" else pg_type.base
    return replace(pg_type, text=text, precision=None, scale=None)


def is_integral(pg_type: PgType) -> bool:
    """Whether the type is one of the integers."""
    return pg_type.base in INTEGER_DIGITS


def _cast(pg_type: PgType) -> str:
    return "({})::" + pg_type.text


def _retyped(carrier: Carrier, pg_type: PgType) -> Carrier:
    restore = carrier.restore if carrier.pg_type == pg_type.text else f"({carrier.restore})::{pg_type.text}"
    return Carrier(pg_type.text, carrier.spark, carrier.carry, restore, carrier.equality, carrier.ordering)
