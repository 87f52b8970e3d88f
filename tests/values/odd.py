"""Settings as somebody may have them, values that they print and parse otherwise, and an exact comparison."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

import psycopg
from psycopg import sql

ODD = (
    {
        "DateStyle": "SQL, DMY",
        "IntervalStyle": "sql_standard",
        "extra_float_digits": "0",
        "TimeZone": "Asia/Kolkata",
    },
    {
        "DateStyle": "German, DMY",
        "IntervalStyle": "iso_8601",
        "extra_float_digits": "-15",
        "TimeZone": "America/New_York",
    },
    {
        "DateStyle": "Postgres, MDY",
        "IntervalStyle": "postgres_verbose",
        "extra_float_digits": "3",
        "TimeZone": "<+03>-3",
    },
)
"""Settings with several odd values, one of each at a time."""

ALWAYS = {
    "array_nulls": "off",
    "backslash_quote": "off",
    "bytea_output": "escape",
    "check_function_bodies": "off",
    "client_encoding": "LATIN1",
    "client_min_messages": "debug1",
    "default_text_search_config": "pg_catalog.german",
    "default_toast_compression": "pglz",
    "default_transaction_deferrable": "on",
    "default_transaction_isolation": "serializable",
    "enable_hashagg": "off",
    "escape_string_warning": "off",
    "exit_on_error": "on",
    "gin_fuzzy_search_limit": "1",
    "idle_in_transaction_session_timeout": "60s",
    "idle_session_timeout": "60s",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "plan_cache_mode": "force_generic_plan",
    "quote_all_identifiers": "on",
    "restrict_nonsystem_relation_kind": "foreign-table",
    "row_security": "off",
    "standard_conforming_strings": "off",
    "synchronize_seqscans": "off",
    "timezone_abbreviations": "India",
    "transform_null_equals": "on",
    "xmlbinary": "hex",
    "xmloption": "document",
}
"""Settings with one odd value."""

NOT_IN_OPTIONS = frozenset({"exit_on_error"})
"""The driver of the test itself lets statements fail."""

TYPES = """
create type public.mood as enum ('sad', 'it''s', 'very happy');
create type public.spot as (x double precision, day date, told text);
"""

VALUES = """
create table public.vals (
    id int primary key, f float8, r real, d date, ts timestamp, tz timestamptz, i interval, b bytea, m money,
    fa float8[], na text[], da date[], e public.mood, ea public.mood[], c public.spot, p point, x xml,
    tsr tsrange, tzr tstzmultirange, j json, jb jsonb, n numeric, t text, o oid, q regclass, v bit(4), u uuid
)
"""

ROW = """
insert into public.vals
select g, 1 / 3.0::float8 + g, 1 / 3.0::real + g, date '2024-02-03' + g,
    timestamp '2024-02-03 04:05:06.789012' + g * interval '1 day',
    timestamptz '2024-11-03 05:30:00.5+00' + g * interval '1 hour',
    make_interval(years => -1, months => g, days => -3, hours => 4, secs => 5.25),
    decode('00ff5c27', 'hex'), 1234.56::numeric::money,
    array[1 / 3.0::float8, null, 'NaN', '-0'], array[null, 'NULL', chr(92), 'x,"y"'],
    array[date '2024-02-03' + g, null], 'it''s', array['sad', null]::public.mood[],
    row(1 / 3.0::float8, date '2024-02-03' + g, chr(92) || '"')::public.spot,
    point(1 / 3.0::float8, g), {xml},
    tsrange(timestamp '2024-02-03', timestamp '2024-03-02'),
    tstzmultirange(tstzrange(timestamptz '2024-02-03 00:00+00', null)), '{{"a": 1}}', '{{"b": [1.50]}}',
    1.500 + g, chr(92) || chr(39) || chr(233), g, 'pg_catalog.pg_class', '1010',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
from generate_series({first}, {last}) g
"""

PLAIN = "select v.*, w.id + 1 as next from public.vals v join public.vals w on w.id = v.id"
GROUPS = (
    "select f, e, c, i, fa, tsr, m, count(*) as n, max(tz) as last, max(f) as most from public.vals"
    " group by f, e, c, i, fa, tsr, m"
)
MEANT = (
    "select id, f::text as ft, fa::text as fat, d::text as dt, ts::text as tst, tz::text as tzt,"
    " i::text as it, b::text as bt, m::text as mt, c::text as ct, p::text as pt, to_char(d, 'TMDay') as day,"
    " (d::text || ' 1:00')::timestamp as again, quote_ident(t) as named, to_tsvector(t) as words,"
    " f * 2 as twice, '1.2345678901234567'::float8 as exact,"
    " date '2024-03-02' as day_of, '{NULL,1}'::text[] as nulls from public.vals"
)

DOCUMENTS = "select id, x, x::text as xt, xmlelement(name b, b) as xb, xmlconcat(x, x) as xx from public.vals"
"""Where the server knows XML."""


def rows(first: int, last: int, *, has_xml: bool) -> str:
    """The statement that inserts the rows of these numbers."""
    return ROW.format(first=first, last=last, xml="xmlparse(content '<a/><b>1</b>')" if has_xml else "null")


def with_options(dsn: str, settings: dict[str, str]) -> str:
    """The connection string, asking for these settings."""
    options = " ".join(
        f"-c {name}={value.replace(' ', chr(92) + ' ')}"
        for name, value in settings.items()
        if name not in NOT_IN_OPTIONS
    )
    return f"{dsn}?options={quote(options, safe='')}"


def alter(admin: psycopg.Connection, kind: str, name: str, settings: dict[str, str]) -> None:
    """Give a role or a database these settings."""
    for setting, value in settings.items():
        statement = sql.SQL("alter {} {} set {} = {}").format(
            sql.SQL(kind), sql.Identifier(name), sql.Identifier(setting), sql.Literal(value)
        )
        admin.execute(statement)


def bits(connection: psycopg.Connection, query: str) -> Counter[str]:
    """The rows of a query as PostgreSQL sends them in binary, each with how often it comes."""
    found = connection.execute(f"select encode(record_send(whole), 'hex') from ({query}) as whole").fetchall()
    return Counter(row for (row,) in found)
