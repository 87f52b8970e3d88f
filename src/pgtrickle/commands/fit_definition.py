"""Makes one stream table match its definition, in the transaction of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgtrickle.model.errors import WrongState
from pgtrickle.model.options import ON_CREATE
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection, set_locally, sql
from pgtrickle.postgres.settings import TRANSPORT

Options = Mapping[str, str | bool | None]
DEFAULTS: Final[Options] = {
    option.name: option.shown_default if option.default is None else option.default for option in ON_CREATE
}
"""What an option is that a definition does not give."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The full name of a stream table, whether it is new, and else what was changed."""

    name: str
    is_new: bool
    changes: tuple[str, ...] = ()


def name_of(connection: Connection, name: str) -> str:
    """The full name of a stream table to be created or altered, as SQL."""
    row = connection.execute(
        "select pg_catalog.format('%%I.%%I', n[1], n[2]) from pgtrickle_internal.new_name(%s) n", (name,)
    ).fetchone()
    assert row is not None
    return str(row[0])


def tables_of_set(connection: Connection, set_name: str) -> list[str]:
    """The stream tables of the caller that a set of definitions created, readers before what they read."""
    rows = connection.execute("select name from pgtrickle_internal.tables_of_set(%s)", (set_name,))
    return [name for (name,) in rows]


def fit(connection: Connection, name: str, query: str, given: Options, set_name: str | None) -> Fitted:
    """Create a stream table, or alter the one of that name, so that it matches a definition."""
    full_name, wanted = name_of(connection, name), {**DEFAULTS, **given}
    row = connection.execute(
        "select pgt_id, (select set_name from pgtrickle.pgt_definition_sets d where d.pgt_id = s.pgt_id)"
        " from pgtrickle.pgt_stream_tables s where pgt_id = pgtrickle_internal.find_stream_table(%s)",
        (full_name,),
    ).fetchone()
    if row is None:
        _call(connection, "create_stream_table", {"name": full_name, "query": query, **given})
        fitted = Fitted(full_name, is_new=True)
    else:
        _check_set(full_name, row[1], set_name)
        fitted = Fitted(full_name, False, _changes(connection, row[0], query, wanted))
        _alter(connection, fitted, query, wanted)
    if fitted.is_new and set_name is not None:
        _note_set(connection, full_name, set_name)
    if (fitted.is_new or fitted.changes) and str(wanted["refresh_mode"]).upper() == "DIFFERENTIAL":
        _check_followable(connection, full_name)
    return fitted


def _changes(connection: Connection, table: StreamTableId, query: str, wanted: Options) -> tuple[str, ...]:
    arguments = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(option), sql.Placeholder(option)) for option in wanted
    )
    row = connection.execute(
        sql.SQL(
            "select pgtrickle_internal.definition_changes("
            "%(_id)s, %(_query)s, pgtrickle_internal.options({}))"
        ).format(arguments),
        {"_id": table, "_query": query, **wanted},
    ).fetchone()
    assert row is not None
    return tuple(row[0])


def _alter(connection: Connection, fitted: Fitted, query: str, wanted: Options) -> None:
    if not fitted.changes:
        return
    changes = {option: wanted[option] for option in fitted.changes if option in wanted}
    if {"query", "settings"} & set(fitted.changes):
        changes["query"] = query
    _call(connection, "alter_stream_table", {"name": fitted.name, **changes})


def _call(connection: Connection, function: str, arguments: Options) -> None:
    given = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in arguments
    )
    connection.execute(
        sql.SQL("select {}({})").format(sql.Identifier("pgtrickle", function), given), dict(arguments)
    )


def _check_set(name: str, found: str | None, wanted: str | None) -> None:
    """Raise if another set created the stream table: it would drop it one day."""
    if found is not None and wanted is not None and found != wanted:
        raise WrongState(
            f"{name} belongs to the set {found} of definitions, not to {wanted}",
            hint=f"remove it from one of the two files, or apply this one as the set {found}",
        )


def _note_set(connection: Connection, name: str, set_name: str) -> None:
    connection.execute("select pgtrickle_internal.prove_ownership(%(name)s::regclass)", {"name": name})
    connection.execute(
        "select pgtrickle_internal.note_set(%(name)s::regclass, %(set)s)", {"name": name, "set": set_name}
    )


def _check_followable(connection: Connection, name: str) -> None:
    """Raise if a stream table that promises to be incremental cannot be."""
    # the compiler takes a while to import, and most definitions do without it
    from pgtrickle.commands.validate import read_definition
    from pgtrickle.refresh.compilation import compile_definition

    with connection.transaction(force_rollback=True):
        rows = connection.execute(
            "select name from pg_catalog.pg_settings where name = any (%s)", (list(TRANSPORT),)
        )
        known = {setting for (setting,) in rows}
        row = connection.execute("select pgtrickle_internal.find_stream_table(%s)", (name,)).fetchone()
        assert row is not None
        set_locally(connection, {setting: TRANSPORT[setting] for setting in known})
        compile_definition(connection, read_definition(connection, row[0]))
