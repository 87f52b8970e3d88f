"""Applies the rows that Spark returned to a stream table, in the transaction of the caller."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pgtrickle.apply.append import append, append_uncounted, only_adds
from pgtrickle.apply.compose import comma_list, numbered_names, relation, with_aliases
from pgtrickle.apply.destination import Destination, finals_of
from pgtrickle.apply.finals import Finals
from pgtrickle.apply.first_rows import apply_first_rows, fill_state, show
from pgtrickle.apply.guard import open_guard
from pgtrickle.apply.load import is_empty, stores_each_row
from pgtrickle.apply.merged_groups import merge_only, show_first
from pgtrickle.apply.result_rows import ArrayRows, CopiedRows, Rows, StagedRows
from pgtrickle.apply.small_change import small_change, write_small_changes
from pgtrickle.apply.storage import indexing_afterwards, state_table
from pgtrickle.apply.stored_table import StoredTable
from pgtrickle.apply.write import Applied, write
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import FirstRows, MergedGroups, ReplacedGroups, RowsTarget
from pgtrickle.postgres.connection import Connection, sql


def apply_changes(
    connection: Connection, destination: Destination, rows: Rows, rescanned: Rows | None = None
) -> Applied:
    """Add a change to a stream table and its state; `rescanned` holds what `groups_to_rescan` asked for."""
    small = small_change(destination, rows, rescanned)
    if small is not None:
        (applied,) = write_small_changes(connection, [small])
        return applied
    _analyze(connection, rows)
    with open_guard(connection, few=isinstance(rows, ArrayRows)):
        return _apply_by_steps(connection, destination, rows, rescanned)


def _apply_by_steps(
    connection: Connection, destination: Destination, rows: Rows, rescanned: Rows | None
) -> Applied:
    """Add a change that takes more than one statement, or whose rows are in a table."""
    stored, state_id, target = destination.stored, destination.state_id, destination.target
    if isinstance(target, FirstRows):
        return apply_first_rows(connection, stored, state_id, target, rows)
    finals = finals_of(state_id, target, rows, rescanned)
    if isinstance(target, MergedGroups) and target.cut is not None:
        return _merge_and_cut(connection, stored, state_id, target, finals)
    if destination.may_append and isinstance(target, RowsTarget) and only_adds(connection, target, rows):
        return append(connection, stored, finals)
    return write(connection, stored, finals.steps, finals.change, finals.problems, finals.parameters)


def replace_all(connection: Connection, destination: Destination, rows: Rows) -> Applied:
    """Make the rows the whole content of a stream table and its state; only the difference is written."""
    stored, state_id, target = destination.stored, destination.state_id, destination.target
    assert not isinstance(target, FirstRows)
    if not isinstance(target, RowsTarget):
        # only sidecars read the state, and the claim of the caller keeps other sidecars out
        connection.execute(sql.SQL("truncate table {}").format(relation(state_table(state_id))), {})
    finals = finals_of(state_id, target, rows, None)
    _analyze(connection, rows)
    if isinstance(target, MergedGroups) and target.cut is not None:
        with open_guard(connection, few=isinstance(rows, ArrayRows)):
            return _merge_and_cut(connection, stored, state_id, target, finals)
    if isinstance(target, RowsTarget) and stored.recording is None and is_empty(connection, stored):
        # nothing to compare with
        is_plain = not isinstance(rows, ArrayRows) and stores_each_row(connection, stored)
        with open_guard(connection, few=False):
            return (append_uncounted if is_plain else append)(connection, stored, finals)
    weighted = sql.SQL("{} union all {}").format(finals.added, stored.rows)
    with open_guard(connection, few=False), _filling(connection, state_id, target, rows):
        applied = write(connection, stored, finals.steps, weighted, finals.problems, finals.parameters)
    if not isinstance(target, RowsTarget):
        connection.execute(sql.SQL("analyze {}").format(relation(state_table(state_id))), {})
    return applied


def _filling(
    connection: Connection, state_id: int, target: RowsTarget | MergedGroups | ReplacedGroups, rows: Rows
) -> AbstractContextManager[None]:
    """Index the state after many groups were written to it."""
    if isinstance(rows, ArrayRows) or isinstance(target, RowsTarget):
        return nullcontext()
    return indexing_afterwards(connection, state_id, target)


def _merge_and_cut(
    connection: Connection, stored: StoredTable, state_id: int, target: MergedGroups, finals: Finals
) -> Applied:
    """Merge the state; after that the first of all groups are known."""
    merge_only(connection, stored.name, finals)
    with open_guard(connection, few=False):
        return show_first(connection, stored, state_id, target)


def fill_first_rows(connection: Connection, destination: Destination) -> Applied:
    """Fill the state of an ordered result from its query, and show the cut."""
    target = destination.target
    assert isinstance(target, FirstRows)
    with open_guard(connection, few=False):
        fill_state(connection, destination.state_id, target)
        return show(connection, destination.stored, destination.state_id, target)


def replace_from_query_staging(connection: Connection, stored: StoredTable, staging: RelationName) -> Applied:
    """Make the rows of a staging table, which has the same columns, the whole content of a stream table."""
    answer = sql.SQL("select {}, 1 as weight from {}").format(
        comma_list(with_aliases(stored.names, numbered_names("o", len(stored.columns)))), relation(staging)
    )
    connection.execute(sql.SQL("analyze {}").format(relation(staging)), {})
    with open_guard(connection, few=False):
        weighted = sql.SQL("{} union all {}").format(answer, stored.rows)
        return write(connection, stored, (), weighted, None, {})


def _analyze(connection: Connection, rows: Rows) -> None:
    """Collect statistics of rows that were just written, for the planner."""
    if isinstance(rows, CopiedRows | StagedRows):
        connection.execute(sql.SQL("analyze {}").format(relation(rows.table)), {})
