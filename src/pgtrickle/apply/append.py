"""Adds rows to a stream table that only ever gets new ones, without looking for rows to remove."""

from __future__ import annotations

import pyarrow.compute as pc

from pgtrickle.apply.compose import comma_list, identifier, numbered_names, relation
from pgtrickle.apply.finals import Finals, cte
from pgtrickle.apply.result_rows import ArrayRows, Rows, carried_columns, relation_of
from pgtrickle.apply.stored_table import StoredTable
from pgtrickle.apply.write import Applied, divergence_error
from pgtrickle.plan.program import RowsTarget
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import Connection, sql


def only_adds(connection: Connection, target: RowsTarget, rows: Rows) -> bool:
    """Whether no row of a change removes anything."""
    if isinstance(rows, ArrayRows):
        return adds_only(rows)
    given = relation_of(rows, carried_columns(target))
    query = sql.SQL("select exists (select from ({}) r where r.{} < 0)").format(
        given.query, identifier(WEIGHT)
    )
    row = connection.execute(query, given.parameters).fetchone()
    assert row is not None
    return not row[0]


def adds_only(rows: ArrayRows) -> bool:
    """Whether no weight is negative."""
    least = pc.min(rows.table.column(WEIGHT)).as_py()
    return least is None or least > 0


def append(connection: Connection, stored: StoredTable, finals: Finals) -> Applied:
    """Insert the rows of a change that only adds some."""
    statement = sql.SQL(
        "with {steps}, inserted as ({insertion} returning 1)"
        " select (select count(*) from inserted), coalesce(sum(weight), 0) from weighted"
    ).format(steps=_steps(finals), insertion=_insertion(stored))
    row = connection.execute(statement, finals.parameters).fetchone()
    assert row is not None
    if row[0] != row[1]:
        raise divergence_error(stored.name, None)
    return Applied(row[0], 0)


def append_uncounted(connection: Connection, stored: StoredTable, finals: Finals) -> Applied:
    """The same for a table that stores each row: what is not counted need not be kept for that."""
    statement = sql.SQL("with {} {}").format(_steps(finals), _insertion(stored))
    return Applied(connection.execute(statement, finals.parameters).rowcount, 0)


def _steps(finals: Finals) -> sql.Composed:
    return comma_list([*finals.steps, cte("weighted", finals.added)])


def _insertion(stored: StoredTable) -> sql.Composed:
    # a function in a select list costs a tenth of one that is joined to each row
    copies = sql.SQL("generate_series(1, w.weight)")
    rows = sql.SQL("select {} from weighted w").format(
        comma_list([*numbered_names("o", len(stored.columns), "w"), copies])
    )
    return sql.SQL("insert into {} ({}) select {} from ({}) w").format(
        relation(stored.name), comma_list(stored.names), comma_list(stored.new_values("o", "w")), rows
    )
