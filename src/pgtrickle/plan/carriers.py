"""The table of types: how each PostgreSQL type travels through Spark without loss.

Timestamps and dates travel as integers, which order as they do; infinity is the largest integer.
What Spark has no type for travels as text. `equality` holds where equal values have equal text.

That text is written by the output function of the type and read by its input function. A cast to or from
text may be user-defined, may write something else, and would run with our rights. A few types are
written as the settings of the session say; where those could lose something (`pgtrickle.is_exact`), a
function with settings of its own writes them.
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.carrier import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    Carrier,
    DecimalType,
)
from pgtrickle.model.source import PgType

MAX_DIGITS = 38
MAX_SCALE = 6
"""Spark keeps this many decimals of a product whatever its precision; more could be cut."""

_DAY = 86_400_000_000

_NATIVE = {
    "boolean": BOOLEAN,
    "smallint": SMALLINT,
    "integer": INT,
    "bigint": BIGINT,
    "real": FLOAT,
    "double precision": DOUBLE,
}
INTEGER_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_TEXT_EQUAL = frozenset(
    {"uuid", "time without time zone", "time with time zone", "inet", "cidr", "macaddr", "macaddr8", "oid"}
)

_OUTPUT = {
    "bit": "bit_out",
    "bit varying": "varbit_out",
    "cidr": "cidr_out",
    "inet": "inet_out",
    "json": "json_out",
    "jsonb": "jsonb_out",
    "macaddr": "macaddr_out",
    "macaddr8": "macaddr8_out",
    "oid": "oidout",
    "time with time zone": "timetz_out",
    "time without time zone": "time_out",
    "tsquery": "tsqueryout",
    "tsvector": "tsvectorout",
    "uuid": "uuid_out",
}
"""Output functions that no setting changes."""
_CENTS = "('x' || encode(cash_send({}), 'hex'))::bit(64)::bigint"
_MONEY = Carrier(
    "money",
    BIGINT,
    _CENTS,
    f"({{}}::numeric * (1.0 / {_CENTS.replace('{}', '1::bigint::money')}))::money",
    equality=True,
    ordering=True,
    stored="({})",
)
"""As PostgreSQL stores it: how many of them are one unit of a currency `lc_monetary` decides."""
_XML = Carrier("xml", STRING, "textin(xml_out({}))", "xmlparse(content {})", equality=False, ordering=False)
"""Read as content, whatever `xmloption` says: a document is content too."""
_OUTPUT_OF_KIND = {"c": "record_out", "r": "range_out", "m": "multirange_out"}
_IS_EXACT = "current_setting('pgtrickle.is_exact', true) is distinct from 'off'"
_NUMERIC = "textin(numeric_out({}))"
TRIMMED_NUMERIC = _NUMERIC.replace("{}", "trim_scale({})")
"""1.0 and 1.00 are equal, so equal values need equal text."""
TEXT = "({})::text"
"""A text as it is; a cast between the types of text cannot be user-defined."""

_DATE = Carrier(
    "date",
    INT,
    "(case when isfinite({}) then {} - date '1970-01-01'"
    " when {} = 'infinity' then 2147483647 when {} = '-infinity' then -2147483648 end)",
    "(case {} when 2147483647 then date 'infinity' when -2147483648 then date '-infinity'"
    " else date '1970-01-01' + {} end)",
    equality=True,
    ordering=True,
)


def _timestamp(pg_type: str, zone: str) -> Carrier:
    """Microseconds since 2000, as PostgreSQL stores them: `extract` rounds those of its last years."""
    kind = "timestamptz" if zone else "timestamp"
    return Carrier(
        pg_type,
        BIGINT,
        f"('x' || encode({kind}_send({{}}), 'hex'))::bit(64)::bigint",
        f"(case {{}} when 9223372036854775807 then {kind} 'infinity'"
        f" when -9223372036854775808 then {kind} '-infinity'"
        f" else (timestamp '2000-01-01' + div({{}}::numeric, {_DAY})::int * interval '1 day'"
        f" + mod({{}}, {_DAY}) * interval '1 microsecond'){zone} end)",
        equality=True,
        ordering=True,
        stored="({})",
    )


_SPECIAL = {
    "date": _DATE,
    "money": _MONEY,
    "timestamp without time zone": _timestamp("timestamp without time zone", ""),
    "timestamp with time zone": _timestamp("timestamp with time zone", " at time zone 'UTC'"),
    "xml": _XML,
}


def carrier_of(pg_type: PgType) -> Carrier:
    """How a value of this type travels when it is compared for equality, or only passed on."""
    return _with_collation(_carrier_of(pg_type), pg_type)


def _carrier_of(pg_type: PgType) -> Carrier:
    base = pg_type.base
    if native := _NATIVE.get(base):
        return Carrier(pg_type.text, native, "({})", _cast(pg_type), True, base != "boolean")
    if special := _SPECIAL.get(base):
        return _with_type(special, pg_type)
    if base == "numeric":
        return Carrier(pg_type.text, STRING, TRIMMED_NUMERIC, _cast(pg_type), True, False, "numeric")
    if base == "bytea":
        return Carrier(pg_type.text, STRING, "encode({}, 'hex')", "decode({}, 'hex')", True, False)
    if base in {"text", "character varying", "character", "name"}:
        ordering = pg_type.c_collated and base != "character"
        return Carrier(pg_type.text, STRING, TEXT, _cast(pg_type), pg_type.deterministic, ordering)
    equality, equals = base in _TEXT_EQUAL or pg_type.kind == "e", pg_type.equals
    if _is_read_by_restore(pg_type):
        return Carrier(
            pg_type.text, STRING, _output_text(pg_type), _read(pg_type), equality, False, None, equals
        )
    input_type = _without_modifier(pg_type).text
    return Carrier(
        pg_type.text, STRING, _output_text(pg_type), _cast(pg_type), equality, False, input_type, equals
    )


def verbatim(pg_type: PgType) -> Carrier:
    """How a value travels that Spark never compares: as it is written, with its trailing zeros or spaces."""
    if pg_type.base == "numeric":
        return Carrier(pg_type.text, STRING, _NUMERIC, _cast(pg_type), False, False, "numeric")
    if pg_type.text == "bpchar":
        padded = Carrier(pg_type.text, STRING, "textin(bpcharout({}))", _cast(pg_type), False, False)
        return _with_collation(padded, pg_type)
    return carrier_of(pg_type)


def _with_collation(carrier: Carrier, pg_type: PgType) -> Carrier:
    """The carrier with the collation of the value: what PostgreSQL computes of it may depend on that."""
    if pg_type.collation is None:
        return carrier
    restore = f"({carrier.restore} collate {pg_type.collation})"
    return replace(carrier, restore=restore, collation=pg_type.collation)


def _output_text(pg_type: PgType) -> str:
    """The value as its output function writes it, where nothing that it writes is lost."""
    value = f"({{}})::{_without_modifier(pg_type).text}"
    if pg_type.kind == "e":
        return f"textin(enum_out({value}))"
    if function := _OUTPUT.get(pg_type.base):
        return f"textin({function}({value}))"
    function = "array_out" if _is_array(pg_type) else _OUTPUT_OF_KIND.get(pg_type.kind)
    formatted = f"case when ({{}}) is not null then format('%s', {value}) end"
    plain = f"textin({function}({value}))" if function else formatted
    return f"case when {_IS_EXACT} then {plain} else pgtrickle_internal.value_text({value}) end"


def _read(pg_type: PgType) -> str:
    """The value that its input function reads in the text."""
    bare = _without_modifier(pg_type).text
    read = f"(select j.v from json_to_record(json_build_object('v', {{}})) as j(v {bare}))"
    return read if bare == pg_type.text else f"({read})::{pg_type.text}"


def _is_read_by_restore(pg_type: PgType) -> bool:
    """Whether no array can take the texts in: there are none of arrays, one of rows comes apart, and
    some types have elements that no comma separates."""
    return _is_array(pg_type) or pg_type.kind == "c" or pg_type.delimiter != ","


def _is_array(pg_type: PgType) -> bool:
    return pg_type.base.endswith("[]")


def decimal(pg_type: PgType, scale: int, digits: int = MAX_DIGITS) -> Carrier:
    """How a `numeric` of known scale travels when Spark computes with it."""
    form = DecimalType(min(digits, MAX_DIGITS), scale)
    carry = f"({{}})::numeric({form.precision},{form.scale})"
    return Carrier(pg_type.text, form, carry, _cast(pg_type), True, True)


def _without_modifier(pg_type: PgType) -> PgType:
    """The type without length, precision or scale."""
    # a plain `character` or `bit` is one long, and so is each element of an array of it
    element, brackets, _ = pg_type.base.partition("[]")
    text = {"character": "bpchar", "bit": '"bit"'}.get(element, element) + brackets
    return replace(pg_type, text=text, precision=None, scale=None)


def is_integral(pg_type: PgType) -> bool:
    """Whether the type is one of the integers."""
    return pg_type.base in INTEGER_DIGITS


def _cast(pg_type: PgType) -> str:
    return "({})::" + pg_type.text


def _with_type(carrier: Carrier, pg_type: PgType) -> Carrier:
    restore = carrier.restore if carrier.pg_type == pg_type.text else f"({carrier.restore})::{pg_type.text}"
    return replace(carrier, pg_type=pg_type.text, restore=restore)
