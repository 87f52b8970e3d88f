"""Settings of a session: those that give a query its meaning, and those that values travel under.

A query means what it means to its author, so what its stable functions depend on is recorded when a
stream table is created, and applied where PostgreSQL evaluates the author's expressions. How values
reach us and how our own statements read is decided here, whatever a role, a database or a connection
string asks for. docs/SETTINGS.md classifies every setting that PostgreSQL has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

Settings = tuple[tuple[str, str], ...]

MEANING: Final = (
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "array_nulls",
    "bytea_output",
    "default_text_search_config",
    "extra_float_digits",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "quote_all_identifiers",
    "timezone_abbreviations",
    "xmlbinary",
    "xmloption",
)
"""What `pgtrickle_internal.session_settings` records of the author's session. No other name is applied."""

EXACT: Final[Mapping[str, str]] = {
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "quote_all_identifiers": "off",
}
"""Under these every value is written so that it can be read again, under any settings, as it was."""

SAFE_PATH: Final = "pg_catalog, pg_temp"
"""Where we look for what has no schema. Under any other path, a function or operator that fits better
could be found where other people create them."""

TRANSPORT: Final[Mapping[str, str]] = {
    **EXACT,
    "TimeZone": "UTC",
    "array_nulls": "on",
    "backslash_quote": "safe_encoding",
    "default_table_access_method": "heap",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "escape_string_warning": "on",
    "exit_on_error": "off",
    "gin_fuzzy_search_limit": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "restrict_nonsystem_relation_kind": "",
    "row_security": "on",
    "search_path": SAFE_PATH,
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "xmlbinary": "base64",
    "xmloption": "content",
}
"""What each of our own connections has from its first statement on; any role may set these."""

ARRAY_NULLS: Final = "array_nulls"
QUOTES_ALL: Final = "quote_all_identifiers"

IS_EXACT: Final = "pgtrickle.is_exact"
"""A setting of our own: `off` where a value's text may not be all of it."""

_ISO: Final = "ISO"
_LEGIBLE: Final = ("IntervalStyle", "bytea_output", "array_nulls")


def meaning(recorded: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What a stream table's expressions mean: the recorded values of known settings, and of no others.

    Whether a value is valid PostgreSQL decides, each time it is set. Arrays that we send may hold nulls,
    so `array_nulls` is left to those who send none.
    """
    known = {name: value for name, value in recorded if name in MEANING and name != ARRAY_NULLS}
    return {**{name: TRANSPORT[name] for name in MEANING if name in TRANSPORT}, **known}


def evaluation(recorded: Iterable[tuple[str, str]]) -> dict[str, str]:
    """All that is set where a stream table's expressions are evaluated."""
    settings = meaning(recorded)
    return {**settings, "search_path": SAFE_PATH, IS_EXACT: "on" if _is_exact(settings) else "off"}


def is_printed_exactly(recorded: Iterable[tuple[str, str]]) -> bool:
    """Whether values are printed for the author as they are under the settings of transport."""
    settings = meaning(recorded)
    return _is_exact(settings) and settings[QUOTES_ALL] == TRANSPORT[QUOTES_ALL]


def is_legible(settings: Mapping[str, str]) -> bool:
    """Whether the driver can read and write times and arrays under these settings."""
    is_plain = all(settings[name] == TRANSPORT[name] for name in _LEGIBLE)
    return is_plain and settings["DateStyle"].startswith(_ISO)


def _is_exact(settings: Mapping[str, str]) -> bool:
    """Whether each value is written so that it can be read again as it was."""
    is_rounded = int(settings["extra_float_digits"]) < 1
    return not is_rounded and is_legible(settings)
