"""Writes the definitions of all stream tables as SQL that creates them again."""

from __future__ import annotations

import json
from typing import Any, Final

from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load

_HEAD: Final = """\
-- The definitions of {count} stream tables of pgtrickle, from the database {database}.
-- Run this where pgtrickle is installed and the sources exist, as a role that may act as the owners:
--   psql -v ON_ERROR_STOP=1 -f this_file
-- A stream table cannot be created while a table of its name exists. Drop the old ones first.
"""
_OPTIONS: Final = (
    "query",
    "schedule",
    "refresh_mode",
    "initialize",
    "diamond_consistency",
    "diamond_schedule_policy",
    "cdc_mode",
    "append_only",
    "pooler_compatibility_mode",
    "tier",
    "refresh_timeout",
    "on_divergence",
    "keep_changes",
    "auxiliary_results",
)
_DROP: Final = sql.SQL("-- drop table {name};\n")


def export_definitions(connection: Connection) -> str:
    """SQL that creates all stream tables with their options, those that are read before their readers."""
    rows = connection.execute(load("pgtrickle.commands", "sql/export.sql")).fetchall()
    parts = [_HEAD.format(count=len(rows), database=_one_line(connection.info.dbname))]
    for row in reversed(rows):
        dropped = _DROP.format(name=sql.Identifier(row[0], row[1])).as_string(connection)
        # a line break in a name would end the comment
        parts.append(f"-- {json.dumps(dropped)}\n" if "\n" in dropped[:-1] or "\r" in dropped else dropped)
    parts += [_definition(connection, row) for row in rows]
    return "".join(parts)


def _definition(connection: Connection, row: tuple[Any, ...]) -> str:
    schema, name, owner, status, settings, *values = row
    table = sql.Identifier(schema, name).as_string(connection)
    lines = [sql.SQL("begin"), sql.SQL("set local role {}").format(sql.Identifier(owner))]
    lines += [
        sql.SQL("set local {} = {}").format(sql.Identifier(setting), sql.Literal(value))
        for setting, value in sorted(settings.items())
    ]
    arguments = [sql.SQL("name => {}").format(sql.Literal(table))]
    arguments += [
        sql.SQL("{} => {}").format(sql.SQL(option), sql.Literal(value))
        for option, value in zip(_OPTIONS, values, strict=True)
    ]
    lines.append(
        sql.SQL("select pgtrickle.create_stream_table(\n    {})").format(sql.SQL(",\n    ").join(arguments))
    )
    if status == "SUSPENDED":
        lines.append(
            sql.SQL("select pgtrickle.alter_stream_table({}, status => 'SUSPENDED')").format(
                sql.Literal(table)
            )
        )
    lines.append(sql.SQL("commit"))
    return "\n" + "".join(f"{line.as_string(connection)};\n" for line in lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
