"""Generates docs/SQL.md from the catalog and the COMMENTs of a new installation."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pgtrickle.catalog.install import install
from pgtrickle.embedded import embedded_server
from pgtrickle.interfaces.sql_errors import SqlError, SqlErrors
from pgtrickle.model.options import BY_NAME
from pgtrickle.postgres.connection import Connection, connect
from pgtrickle.postgres.statements import load

_HEAD: Final = """\
# SQL reference

This page is generated from the `COMMENT`s of a new installation: run `make reference` after a change.

Everything you may call or read is in the schema `pgtrickle`. Call a **function** with `SELECT` and a
**procedure** with `CALL`, outside a transaction block. A function does its work in your transaction: if you
roll back, nothing has happened. The schemas `pgtrickle_internal`, `pgtrickle_changes` and `pgtrickle_state`
are not an interface and may change at any time.

Write names of stream tables and sources as in SQL: `sales`, `shop.sales`, `"Sales 2025"`. The
[configuration reference](CONFIGURATION.md#options-of-a-stream-table) lists the options of a stream table with
their defaults. In `alter_stream_table`, null leaves an option as it is.

Each entry lists the SQLSTATEs that pgtrickle raises itself; the [list at the end](#errors) has their
messages, and [Errors](ERRORS.md) the causes and remedies. PostgreSQL can raise others, for example for a
mistake in your query.
"""

TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "Create, change and drop": (
        "create_stream_table",
        "create_stream_table_if_not_exists",
        "create_or_replace_stream_table",
        "create_stream_table_and_wait",
        "adopt_materialized_view",
        "bulk_create",
        "validate_query",
        "alter_stream_table",
        "drop_stream_table",
        "resume_stream_table",
        "export_definition",
    ),
    "Refresh": ("refresh_stream_table", "refresh_and_wait", "manual_refresh", "preview_refresh"),
    "Follow changes": ("changes", "change_point"),
    "Watch": (
        "pgt_status",
        "get_staleness",
        "get_refresh_history",
        "refresh_timeline",
        "st_refresh_stats",
        "explain_refresh_mode",
        "explain_st",
        "list_sources",
        "dependency_tree",
        "waits_for",
        "change_buffer_sizes",
        "check_cdc_health",
        "trigger_inventory",
        "worker_allocation_status",
        "stream_tables_info",
        "pg_stat_stream_tables",
        "pgt_cdc_status",
        "visible_history",
        "server_worker_inventory",
        "version",
        "sidecar_role",
    ),
    "Health and alerts": ("health_check", "health_summary", "quick_health", "alerts"),
    "Pass changes on": (
        "stream_table_to_publication",
        "drop_stream_table_publication",
        "register_subscriber",
        "unregister_subscriber",
        "publication_status",
        "subscribe",
        "unsubscribe",
        "subscriptions",
    ),
    "Read other databases": (
        "attach_database",
        "declare_source",
        "detach_database",
        "attached_databases",
        "attached_tables",
        "attached_frontiers",
        "remote_readers",
        "broker_entries",
    ),
    "Pause": (
        "gate_source",
        "ungate_source",
        "gated_sources",
        "drain",
        "undrain",
        "is_drained",
        "set_enabled",
        "is_enabled",
    ),
    "Verify and repair": (
        "verify_stream_table",
        "repair",
        "repair_stream_table",
        "repairs",
        "visible_repairs",
        "is_copy",
    ),
}
"""The headings of the page. What is not listed comes at the end, under its own heading."""
OTHERS: Final = "Others"


@dataclass(frozen=True, slots=True)
class Part:
    """An argument or a result column, and what it means."""

    name: str
    type: str
    default: str | None
    meaning: str


@dataclass(frozen=True, slots=True)
class PublicObject:
    """A function, procedure or view that users may use."""

    kind: str
    name: str
    summary: str
    result: str | None
    arguments: tuple[Part, ...]
    columns: tuple[Part, ...]
    unknown: frozenset[str]
    """Names that its comment describes although it has no such part."""


def public_objects(connection: Connection) -> list[PublicObject]:
    """What schema pgtrickle offers, in the order of the names."""
    rows = connection.execute(load("pgtrickle.interfaces", "sql/public_objects.sql"))
    return [_public_object(*row) for row in rows]


def _public_object(
    kind: str, name: str, comment: str | None, result: str | None, arguments: Any, columns: Any
) -> PublicObject:
    summary, _, described = (comment or "").partition("\n\n")
    meanings = dict(re.findall(r"^(\w+): (.*)$", described, re.MULTILINE))
    parts = [_part(each, meanings, is_option=True) for each in arguments]
    shown = [_part(each, meanings, is_option=False) for each in columns]
    unknown = meanings.keys() - {part.name for part in (*parts, *shown)}
    return PublicObject(kind, name, summary, result, tuple(parts), tuple(shown), frozenset(unknown))


def _part(part: Mapping[str, str | None], meanings: Mapping[str, str], *, is_option: bool) -> Part:
    name = part["name"] or ""
    meaning = meanings.get(name) or part["comment"] or ""
    if is_option and not meaning and name in BY_NAME:
        meaning = BY_NAME[name].help
    return Part(name, part["type"] or "", part["default"], meaning)


def sql_page(connection: Connection) -> str:
    """The text of docs/SQL.md."""
    objects = {each.name: each for each in public_objects(connection)}
    errors = SqlErrors(connection)
    listed = {name for names in TOPICS.values() for name in names}
    topics = {**TOPICS, OTHERS: tuple(name for name in objects if name not in listed)}
    text = _HEAD
    for topic, names in topics.items():
        present = [objects[name] for name in names if name in objects]
        if present:
            text += f"\n## {topic}\n" + "".join(_entry(each, errors.of(each.name)) for each in present)
    raised = {error for each in objects for error in errors.of(each)}
    return text + _error_list(raised)


def _entry(public: PublicObject, errors: list[SqlError]) -> str:
    text = f"\n### {public.name}\n\n"
    if public.kind != "view":
        call = ",".join(_argument(part) for part in public.arguments)
        text += f"```\n{public.kind} pgtrickle.{public.name}({call})"
        text += f" returns {public.result}\n```\n\n" if public.result else "\n```\n\n"
    else:
        text += f"```\nview pgtrickle.{public.name}\n```\n\n"
    text += f"{_escape(public.summary)}\n"
    text += _table("argument", [part for part in public.arguments if part.meaning])
    text += _table("column", list(public.columns))
    if errors and public.kind != "view":
        states = sorted({(error.sqlstate, error.error.__name__) for error in errors})
        text += "\nErrors: " + ", ".join(f"`{state}` {name}" for state, name in states) + ".\n"
    return text


def _argument(part: Part) -> str:
    default = "" if part.default is None else f" default {part.default.removesuffix('::' + part.type)}"
    return f"\n    {part.name} {part.type}{default.replace('NULL', 'null')}"


def _table(title: str, parts: list[Part]) -> str:
    if not parts:
        return ""
    rows = "".join(f"| `{part.name}` | {part.type} | {_cell(part.meaning)} |\n" for part in parts)
    return f"\n| {title} | type | meaning |\n|---|---|---|\n{rows}"


def _error_list(errors: set[SqlError]) -> str:
    text = "\n## Errors\n\nWhat varies in a message is shown as `…`.\n\n"
    text += "| SQLSTATE | error | message |\n|---|---|---|\n"
    for error in sorted(errors):
        name = f"{error.error.code}: {error.error.__name__}"
        anchor = name.lower().replace(": ", "-")
        text += f"| `{error.sqlstate}` | [{name}](ERRORS.md#{anchor}) | {_cell(error.message)} |\n"
    return text


def _cell(text: str) -> str:
    return _escape(text).replace("|", "\\|").replace("\n", " ")


def _escape(text: str) -> str:
    return text.replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


@contextmanager
def new_installation() -> Iterator[Connection]:
    """A connection to a server of its own, in which pgtrickle has just been installed."""
    with tempfile.TemporaryDirectory() as directory:
        # the account that runs PostgreSQL for root enters it
        Path(directory).chmod(0o755)
        with embedded_server(Path(directory) / "server") as dsn, connect(dsn) as connection:
            install(connection)
            yield connection


if __name__ == "__main__":
    with new_installation() as _connection:
        print(sql_page(_connection), end="")
