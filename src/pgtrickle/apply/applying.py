"""From the rows that Spark returned to a correct stream table, inside the transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

from pgtrickle.apply.composing import aliased, identifier, listed, numbered, relation
from pgtrickle.apply.finals import Finals, outputs_of, restored, step
from pgtrickle.apply.first_rows import apply_first_rows, fill_state, show
from pgtrickle.apply.merged import merge_only, merged_finals, show_first
from pgtrickle.apply.replaced import replaced_finals
from pgtrickle.apply.rows import ArrayRows, Rows, carried_columns, relation_of
from pgtrickle.apply.storage import state_table
from pgtrickle.apply.writing import Applied, Column, Stored, write
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import FirstRows, MergedGroups, Output, ReplacedGroups, RowsTarget, Target
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import Connection, sql


def apply_changes(
    connection: Connection,
    table: RelationName,
    match_columns: Sequence[str],
    state_id: int,
    target: Target,
    rows: Rows,
    rescanned: Rows | None = None,
) -> Applied:
    """Add a change to a stream table and its state.

    `match_columns` is, for each column of the table, the SQL that its index hashes it by.
    `rescanned` are the groups that `groups_to_rescan` asked for.
    """
    _analyze(connection, rows)
    with _writing(connection, few=isinstance(rows, ArrayRows)):
        return apply_opened(connection, table, match_columns, state_id, target, rows, rescanned)


@contextmanager
def opened_for_few(connection: Connection) -> Iterator[None]:
    """Open the guard of stream tables for several small changes, each given to `apply_opened`."""
    with _writing(connection, few=True):
        yield


def apply_opened(
    connection: Connection,
    table: RelationName,
    match_columns: Sequence[str],
    state_id: int,
    target: Target,
    rows: Rows,
    rescanned: Rows | None = None,
) -> Applied:
    """Add a change as `apply_changes` does, where the guard is open already."""
    stored = _stored(table, match_columns, target.outputs, target.key)
    if isinstance(target, FirstRows):
        return apply_first_rows(connection, stored, state_id, target, rows)
    finals = _finals(state_id, target, rows, rescanned)
    if isinstance(target, MergedGroups) and target.cut is not None:
        return _merged_and_cut(connection, stored, state_id, target, finals)
    weighted = finals.added
    if finals.removed is not None:
        weighted = sql.SQL("{} union all {}").format(finals.added, finals.removed)
    return write(connection, stored, finals.steps, weighted, finals.problems, finals.parameters)


def replace_all(
    connection: Connection,
    table: RelationName,
    match_columns: Sequence[str],
    state_id: int,
    target: RowsTarget | MergedGroups | ReplacedGroups,
    rows: Rows,
) -> Applied:
    """Let the rows be all that a stream table and its state hold; only the difference is written."""
    stored = _stored(table, match_columns, target.outputs, target.key)
    if not isinstance(target, RowsTarget):
        # nobody but us reads the state, and the caller's claim keeps the others of us out
        connection.execute(sql.SQL("truncate table {}").format(relation(state_table(state_id))), {})
    finals = _finals(state_id, target, rows, None)
    _analyze(connection, rows)
    if isinstance(target, MergedGroups) and target.cut is not None:
        with _writing(connection, few=isinstance(rows, ArrayRows)):
            return _merged_and_cut(connection, stored, state_id, target, finals)
    weighted = sql.SQL("{} union all {}").format(finals.added, stored.rows)
    with _writing(connection, few=False):
        applied = write(connection, stored, finals.steps, weighted, finals.problems, finals.parameters)
    if not isinstance(target, RowsTarget):
        connection.execute(sql.SQL("analyze {}").format(relation(state_table(state_id))), {})
    return applied


def _merged_and_cut(
    connection: Connection, stored: Stored, state_id: int, target: MergedGroups, finals: Finals
) -> Applied:
    """Merge the state first; then the first of all groups are known."""
    merge_only(connection, stored.name, finals)
    with _writing(connection, few=False):
        return show_first(connection, stored, state_id, target)


def fill_first_rows(
    connection: Connection,
    table: RelationName,
    match_columns: Sequence[str],
    state_id: int,
    target: FirstRows,
) -> Applied:
    """Fill the state of an ordered result from its query, and show the cut."""
    with _writing(connection, few=False):
        fill_state(connection, state_id, target)
        return show(connection, _stored(table, match_columns, target.outputs, None), state_id, target)


def replace_from_query_staging(
    connection: Connection,
    table: RelationName,
    match_columns: Sequence[str],
    columns: Sequence[Output],
    staging: RelationName,
    key: tuple[str, ...] | None = None,
) -> Applied:
    """Let the rows of a staging table with the stream table's own columns be all that it holds."""
    stored = _stored(table, match_columns, columns, key)
    answer = sql.SQL("select {}, 1 as weight from {}").format(
        listed(aliased(stored.names, numbered("o", len(columns)))), relation(staging)
    )
    connection.execute(sql.SQL("analyze {}").format(relation(staging)), {})
    with _writing(connection, few=False):
        weighted = sql.SQL("{} union all {}").format(answer, stored.rows)
        return write(connection, stored, (), weighted, None, {})


def _stored(
    table: RelationName, matches: Sequence[str], outputs: Sequence[Output], key: tuple[str, ...] | None
) -> Stored:
    pairs = zip(outputs, matches, strict=True)
    columns = (Column(output.name, output.pg_type, match, output.domain) for output, match in pairs)
    return Stored(table, tuple(columns), key)


def _finals(
    state_id: int, target: RowsTarget | MergedGroups | ReplacedGroups, rows: Rows, rescanned: Rows | None
) -> Finals:
    match target:
        case RowsTarget():
            return _row_finals(target, rows)
        case MergedGroups():
            return merged_finals(state_id, target, rows, rescanned)
        case ReplacedGroups():
            return replaced_finals(state_id, target, rows)
        case _:
            assert_never(target)


def _row_finals(target: RowsTarget, rows: Rows) -> Finals:
    given = relation_of(rows, carried_columns(target))
    names = [identifier(field.name) for field in target.fields]
    weight = identifier(WEIGHT)
    scope = sql.SQL("(select {} from given r) x").format(
        listed([*aliased(restored(target.fields, "r"), names), sql.SQL("r.{}").format(weight)])
    )
    added = outputs_of(target.outputs, None, scope, sql.SQL("x.{}").format(weight))
    return Finals((step("given", given.query),), added, None, None, given.parameters)


def _analyze(connection: Connection, rows: Rows) -> None:
    """The rows were written a moment ago: the planner knows nothing of them yet."""
    if not isinstance(rows, ArrayRows):
        connection.execute(sql.SQL("analyze {}").format(relation(rows.table)), {})


@contextmanager
def _writing(connection: Connection, *, few: bool) -> Iterator[None]:
    """Open the guard of stream tables for what this transaction does inside; then all is as it was.

    A few rows are to be looked up by their hash also where the table was filled a moment ago and
    the planner has no statistics yet; compiling such a statement would cost more than it saves.
    """
    names = ("pgtrickle.applying", "enable_seqscan", "jit", "work_mem")
    settings = ("on", "off", "off", None) if few else ("on", "on", "off", "64MB")
    query = """
        select array_agg(current_setting(name, true) order by n),
            array_agg(set_config(name, coalesce(value, current_setting(name, true), ''), true) order by n)
        from unnest(%s::text[], %s::text[]) with ordinality as s(name, value, n)
    """
    row = connection.execute(query, (list(names), list(settings))).fetchone()
    assert row is not None
    yield
    was_open, *others = row[0]
    connection.execute(query, (list(names), [was_open or "off", *others]))
