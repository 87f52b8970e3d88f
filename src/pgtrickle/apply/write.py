"""Writes weighted rows into a stream table in one statement, and touches no other row of it.

Rows are folded first: a row with a net weight of zero is not written. A row to be removed is found through
the index on the hash of the whole row and confirmed by null-safe equality. If rows have a key, a removed row
and an added row with the same key become an update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrickle.apply.compose import (
    comma_list,
    numbered_names,
    relation,
    same,
    trusted_sql,
    with_aliases,
)
from pgtrickle.apply.finals import cte
from pgtrickle.apply.recording import (
    REFRESHED_AT,
    MovedRows,
    Recording,
    moved_steps,
    record_too_many,
    recording_steps,
)
from pgtrickle.apply.stored_table import StoredColumn, StoredTable
from pgtrickle.model.errors import Diverged
from pgtrickle.model.hints import call
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, sql

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Applied:
    """How many rows were inserted and deleted; an update counts as both."""

    inserted: int
    deleted: int


def write(
    connection: Connection,
    stored: StoredTable,
    steps: Sequence[sql.Composable],
    weighted: sql.Composable,
    problems: sql.Composable | None,
    parameters: Mapping[str, object],
) -> Applied:
    """Write the rows that `weighted` selects as `o1 … on, weight`; raise Diverged if they do not fit."""
    statement = writing_statement(stored, steps, weighted, problems)
    answer = connection.execute(statement, writing_parameters(stored, parameters))
    return check_written(connection, stored, answer.fetchone())


def writing_statement(
    stored: StoredTable,
    steps: Sequence[sql.Composable],
    weighted: sql.Composable,
    problems: sql.Composable | None,
) -> sql.Composed:
    """The statement that writes these rows; its answer is for `check_written`."""
    return sql.SQL(
        "with {steps} select (select count(*) from inserted), (select count(*) from updated),"
        " (select count(*) from deleted), coalesce(sum(greatest(n, 0)), 0), coalesce(-sum(least(n, 0)), 0),"
        " (select array_agg(problem) from (select problem from problems limit {shown}) p), {recorded}"
        " from delta"
    ).format(
        steps=comma_list([*steps, *_steps(stored, weighted), cte("problems", _problems(stored, problems))]),
        shown=_SHOWN,
        recorded=sql.SQL("(select count(*) from recorded)" if stored.recording else "0"),
    )


def writing_parameters(stored: StoredTable, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """The parameters of the statement: those of the rows, and when they are recorded."""
    if isinstance(stored.recording, Recording):
        return {**parameters, REFRESHED_AT: stored.recording.refreshed_at}
    return parameters


def check_written(connection: Connection, stored: StoredTable, answer: tuple[Any, ...] | None) -> Applied:
    """How many rows the statement wrote; raise Diverged if they did not fit."""
    assert answer is not None
    inserted, updated, deleted, came, went, found, recorded = answer
    if found or (inserted + updated, deleted + updated) != (came, went):
        raise divergence_error(stored.name, found)
    if isinstance(stored.recording, Recording) and came + went > 0 and recorded == 0:
        record_too_many(connection, stored.recording, int(came + went))
    return Applied(inserted + updated, deleted + updated)


def divergence_error(table: RelationName, problems: list[str] | None) -> Diverged:
    """The error for a table that does not fit its change."""
    if not problems:
        return Diverged(
            f"not every row could be written to {table}",
            hint=f"a trigger on it suppresses rows: drop it, then run {call('repair_stream_table', table)}",
        )
    return Diverged(
        f"{table} does not hold the rows that its changes expect: {'; '.join(problems)}",
        hint=f"to load it again, run {call('repair_stream_table', table)}",
        rows=problems,
    )


def _steps(stored: StoredTable, weighted: sql.Composable) -> list[sql.Composable]:
    """The changed rows, then the writes.

    `found` is joined only by ctid: the planner cannot estimate its number of rows, and a nested loop would be
    quadratic.
    """
    return [
        cte("weighted", weighted),
        cte("folded", _folded_rows(stored)),
        cte("delta", _delta_rows(stored)),
        cte("found", _found_rows(stored)),
        # each write waits for the one before it, so that a unique index never meets the new row first
        cte("deleted", _delete(stored)),
        cte("updated", _update(stored)),
        cte("inserted", _insert(stored)),
        *_recording(stored),
    ]


def _recording(stored: StoredTable) -> list[sql.Composable]:
    if stored.recording is None:
        return []
    if isinstance(stored.recording, MovedRows):
        return moved_steps(stored.recording, stored.values("m", "d"))
    names = [column.name for column in stored.columns]
    return recording_steps(stored.recording, names, stored.values("m", "d"))


def _folded_rows(stored: StoredTable) -> sql.Composed:
    """The net weight of each row, by the forms that its columns are matched by."""
    count = len(stored.columns)
    values = numbered_names("o", count, "w")
    group_by: list[sql.Composable] = list(numbered_names("m", count, "x"))
    if stored.key is not None:
        # 1.0 and 1.00 are equal, but a reader sees which of them is stored
        pairs = zip(stored.columns, values, strict=True)
        group_by += [
            _visible_form(column).format(value) for column, value in pairs if not column.is_alike_when_equal
        ]
    # the innermost scope has only the names of the table, so they cannot collide with ours
    return sql.SQL(
        "select {matched}, sum(w.weight)::bigint as n from weighted w"
        " cross join lateral (select {matches} from (select {named}) t) x"
        " group by {group_by} having sum(w.weight) <> 0"
    ).format(
        matched=comma_list(numbered_names("m", count, "x")),
        matches=comma_list(with_aliases(stored.matches, numbered_names("m", count))),
        named=comma_list(with_aliases(values, stored.names)),
        group_by=comma_list(group_by),
    )


def _visible_form(column: StoredColumn) -> sql.SQL:
    """What distinguishes equal values that look different: the scale of a numeric, else the text."""
    return sql.SQL("scale({})" if column.pg_type == "numeric" else "row({})::text")


def _delta_rows(stored: StoredTable) -> sql.Composed:
    """The net rows; a removed and an added row with the same key are `is_paired`.

    The removed row of a pair has the values of the added one in `x1 … xn`.
    """
    count = len(stored.columns)
    hashed = sql.SQL("hash_record_extended(row({}), 0) as h").format(comma_list(numbered_names("m", count)))
    columns = [sql.SQL("row_number() over () as id, n"), hashed, *numbered_names("m", count)]
    if stored.key is None:
        columns.append(sql.SQL("false as is_paired"))
        return sql.SQL("select {} from folded").format(comma_list(columns))
    alone = "count(*) over k = 2 and min(n) over k = -1 and max(n) over k = 1 as is_paired"
    coming = [
        sql.SQL("lead({}) over (k order by n)").format(matched) for matched in numbered_names("m", count)
    ]
    columns += [sql.SQL(alone), *with_aliases(coming, numbered_names("x", count))]
    keys = [
        trusted_sql(f"m{n}") for n, column in enumerate(stored.columns, start=1) if column.name in stored.key
    ]
    by = sql.SQL("partition by {}").format(comma_list(keys)) if keys else sql.SQL("")
    return sql.SQL("select {} from folded window k as ({})").format(comma_list(columns), by)


def _found_rows(stored: StoredTable) -> sql.Composed:
    """Each row to remove, once for every stored copy of it, or once without any."""
    count = len(stored.columns)
    columns = [
        "-d.n as wanted, d.is_paired, t.tid",
        "row_number() over c as copy",
        "count(t.tid) over c as copies",
    ]
    coming = [] if stored.key is None else numbered_names("x", count, "d")
    return sql.SQL(
        "select {columns} from delta d left join (select ctid as tid,"
        " hash_record_extended(row({matches}), 0) as h, {named} from only {table}) t"
        " on t.h = d.h and {same} where d.n < 0 window c as (partition by d.id)"
    ).format(
        columns=comma_list([*map(trusted_sql, columns), *numbered_names("m", count, "d"), *coming]),
        matches=comma_list(stored.matches),
        named=comma_list(with_aliases(stored.compared, numbered_names("m", count))),
        table=relation(stored.name),
        same=same(
            numbered_names("m", count, "t"),
            numbered_names("m", count, "d"),
            [column.matched_type for column in stored.columns],
        ),
    )


def _delete(stored: StoredTable) -> sql.Composed:
    return sql.SQL(
        "delete from only {} t using found f"
        " where t.ctid = f.tid and f.copy <= f.wanted and not f.is_paired returning 1"
    ).format(relation(stored.name))


def _update(stored: StoredTable) -> sql.Composable:
    if stored.key is None:
        return sql.SQL("select 1 where false")
    return sql.SQL(
        "update only {} t set ({}) = row({}) from found f where t.ctid = f.tid and f.copy = 1"
        " and f.is_paired and (select count(*) from deleted) >= 0 returning 1"
    ).format(relation(stored.name), comma_list(stored.names), comma_list(stored.values("x", "f")))


def _insert(stored: StoredTable) -> sql.Composed:
    return sql.SQL(
        "insert into {} ({}) select {} from delta d cross join lateral generate_series(1, d.n)"
        " where d.n > 0 and not d.is_paired and (select count(*) from deleted) >= 0"
        " and (select count(*) from updated) >= 0 returning 1"
    ).format(relation(stored.name), comma_list(stored.names), comma_list(stored.values("m", "d")))


def _problems(stored: StoredTable, others: sql.Composable | None) -> sql.Composed:
    """A text for each row to remove that is missing, and the `others`."""
    missing = sql.SQL(
        "select f.wanted || ' x ' || left(row({})::text, 1000) || ' expected, found ' || f.copies as problem"
        " from found f where f.copies < f.wanted and f.copy = 1"
    ).format(comma_list(numbered_names("m", len(stored.columns), "f")))
    return sql.SQL("{} union all {}").format(missing, others) if others else missing
