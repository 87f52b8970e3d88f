"""Session settings: those that give a query its meaning, and those for the transport of values.

A query keeps the meaning that it has for its author. So the settings that stable functions depend on are
recorded when a stream table is created, and applied where PostgreSQL evaluates the author's expressions.
The transport settings decide how values reach us and how our own statements are parsed, regardless of the
role, database or connection string. docs/SETTINGS.md classifies every setting of PostgreSQL.
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
"""What `pgtrickle_internal.session_settings` records of the author's session. No other setting is applied."""

EXACT: Final[Mapping[str, str]] = {
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "quote_all_identifiers": "off",
}
"""With these, the text of every value can be parsed back to the same value under any settings."""

SAFE_PATH: Final = "pg_catalog, pg_temp"
"""Our search_path. Any other path could find a better matching function or operator of another role."""
PLANNING: Final[Mapping[str, str]] = {
    "enable_bitmapscan": "on",
    "enable_hashagg": "on",
    "enable_hashjoin": "on",
    "enable_indexonlyscan": "on",
    "enable_indexscan": "on",
    "enable_material": "on",
    "enable_memoize": "on",
    "enable_mergejoin": "on",
    "enable_nestloop": "on",
    "enable_seqscan": "on",
    "enable_sort": "on",
    "enable_tidscan": "on",
    "from_collapse_limit": "8",
    "join_collapse_limit": "8",
    "plan_cache_mode": "auto",
}
"""Without one of these, queries over the catalog and lookups of a few rows may take minutes."""

TRANSPORT: Final[Mapping[str, str]] = {
    **EXACT,
    **PLANNING,
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
"""The settings of our own connections from their first statement on. Every role can set them."""

ARRAY_NULLS: Final = "array_nulls"
QUOTES_ALL: Final = "quote_all_identifiers"

IS_EXACT: Final = "pgtrickle.is_exact"
"""Our own setting: `off` where the text of a value may be lossy."""

_ISO: Final = "ISO"
_LEGIBLE: Final = ("IntervalStyle", "bytea_output", "array_nulls")


def meaning(recorded: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The settings that give a stream table's expressions their meaning: the recorded ones that are known.

    PostgreSQL validates each value when it is set. `array_nulls` is left out, because arrays that we send may
    contain nulls; callers that send none can set it.
    """
    known = {name: value for name, value in recorded if name in MEANING and name != ARRAY_NULLS}
    return {**{name: TRANSPORT[name] for name in MEANING if name in TRANSPORT}, **known}


def evaluation(recorded: Iterable[tuple[str, str]]) -> dict[str, str]:
    """All settings under which a stream table's expressions are evaluated."""
    settings = meaning(recorded)
    return {**settings, "search_path": SAFE_PATH, IS_EXACT: "on" if _is_exact(settings) else "off"}


def is_printed_exactly(recorded: Iterable[tuple[str, str]]) -> bool:
    """Whether values are printed for the author as under the transport settings."""
    settings = meaning(recorded)
    return _is_exact(settings) and settings[QUOTES_ALL] == TRANSPORT[QUOTES_ALL]


def is_legible(settings: Mapping[str, str]) -> bool:
    """Whether the driver can parse and write times and arrays under these settings."""
    is_plain = all(settings[name] == TRANSPORT[name] for name in _LEGIBLE)
    return is_plain and settings["DateStyle"].startswith(_ISO)


def _is_exact(settings: Mapping[str, str]) -> bool:
    """Whether the text of every value can be parsed back to the same value."""
    is_rounded = int(settings["extra_float_digits"]) < 1
    return not is_rounded and is_legible(settings)
