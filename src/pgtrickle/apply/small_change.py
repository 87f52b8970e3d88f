"""Changes of few rows: the rows are parameters, so the statement for a destination is composed only once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pgtrickle.apply.append import adds_only
from pgtrickle.apply.destination import Destination, finals_of
from pgtrickle.apply.guard import open_guard
from pgtrickle.apply.merge import RESCANNED_ROWS, rescanned_columns
from pgtrickle.apply.result_rows import ArrayRows, Rows, array_parameters, carried_columns, no_rows
from pgtrickle.apply.stored_table import StoredTable
from pgtrickle.apply.write import Applied, check_written, writing_parameters, writing_statement
from pgtrickle.plan.program import FirstRows, MergedGroups, RowsTarget
from pgtrickle.postgres.connection import Connection

_MOST_STATEMENTS: Final = 4096
"""How many statements are cached; each has a few kilobytes."""


@dataclass(frozen=True, slots=True)
class SmallChange:
    """A change that one statement writes."""

    stored: StoredTable
    statement: bytes
    parameters: Mapping[str, object]


def small_change(destination: Destination, rows: Rows, rescanned: Rows | None = None) -> SmallChange | None:
    """A change as one statement with its rows as parameters; None if it takes more than that."""
    target = destination.target
    if not isinstance(rows, ArrayRows) or isinstance(target, FirstRows):
        return None
    if isinstance(target, MergedGroups) and target.cut is not None:
        return None
    if destination.may_append and isinstance(target, RowsTarget) and adds_only(rows):
        return None
    parameters = array_parameters(rows.table, carried_columns(target))
    if isinstance(rescanned, ArrayRows):
        parameters |= array_parameters(rescanned.table, rescanned_columns(target), RESCANNED_ROWS)
    elif rescanned is not None:
        return None
    stored = destination.stored
    statement = _statement(destination, is_rescanned=rescanned is not None)
    return SmallChange(stored, statement, writing_parameters(stored, parameters))


def write_small_changes(connection: Connection, changes: Sequence[SmallChange]) -> list[Applied]:
    """Write several changes in one round trip, with an open guard; raise Diverged if one does not fit."""
    if not changes:
        return []
    with connection.pipeline(), open_guard(connection, few=True):
        answers = [connection.execute(change.statement, change.parameters) for change in changes]
    pairs = zip(changes, answers, strict=True)
    return [check_written(connection, change.stored, answer.fetchone()) for change, answer in pairs]


@lru_cache(maxsize=_MOST_STATEMENTS)
def _statement(destination: Destination, *, is_rescanned: bool) -> bytes:
    target = destination.target
    assert not isinstance(target, FirstRows)
    rescanned = no_rows(rescanned_columns(target)) if is_rescanned else None
    finals = finals_of(destination.state_id, target, no_rows(carried_columns(target)), rescanned)
    statement = writing_statement(destination.stored, finals.steps, finals.change, finals.problems)
    return statement.as_bytes(None)
