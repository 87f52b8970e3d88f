"""Fills an empty stream table with the answer of its query, where PostgreSQL computes it."""

from __future__ import annotations

from pgtrickle.apply.compose import comma_list, relation
from pgtrickle.apply.guard import open_guard
from pgtrickle.apply.stored_table import StoredTable
from pgtrickle.apply.write import Applied
from pgtrickle.postgres.connection import Connection, sql

_STORES_ALL = """
    select not exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal
            and t.tgenabled <> 'D' and t.tgtype::integer & 7 = 7)
        and not exists (select from pg_rewrite r where r.ev_class = c.oid)
    from pg_class c where c.oid = %s::regclass
"""
"""Whether neither a trigger before the insertion of a row (bits 1, 2 and 4) nor a rule may leave rows out."""


def is_empty(connection: Connection, stored: StoredTable) -> bool:
    """Whether a stream table has no rows."""
    query = sql.SQL("select not exists (select from only {})").format(relation(stored.name))
    row = connection.execute(query, {}).fetchone()
    assert row is not None
    return bool(row[0])


def can_be_filled(connection: Connection, stored: StoredTable) -> bool:
    """Whether a plain INSERT makes an answer the content of the table: it is empty, and stores each row.

    A change that is recorded, and the rows that a trigger of the owner leaves out, have to be counted.
    """
    is_new = stored.recording is None and is_empty(connection, stored)
    return is_new and stores_each_row(connection, stored)


def stores_each_row(connection: Connection, stored: StoredTable) -> bool:
    """Whether nothing of the owner can leave out rows that are inserted."""
    row = connection.execute(_STORES_ALL, (stored.name.sql,)).fetchone()
    return row is not None and bool(row[0])


def fill(connection: Connection, stored: StoredTable, query: sql.Composable) -> Applied:
    """Insert the answer of a query that has the columns of the table, in their types and order.

    The query is evaluated under the settings of the session, with an open guard: it must not write.
    """
    statement = sql.SQL("insert into {} ({}) {}").format(
        sql.Identifier(stored.name.schema, stored.name.name),
        comma_list(sql.Identifier(column.name) for column in stored.columns),
        query,
    )
    with open_guard(connection, few=False):
        return Applied(connection.execute(statement).rowcount, 0)
