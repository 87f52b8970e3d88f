"""The tables beside a stream table: the state of its groups, and the staging of its rows.

State is looked up by a hash of the key. Each state has its own hash function, because it is decided once,
here, which types PostgreSQL can hash; all others are hashed as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import assert_never

from pgtrickle.apply.compose import (
    STATE_SCHEMA,
    column_definition,
    comma_list,
    identifier,
    relation,
)
from pgtrickle.apply.ordered_state import create_ordered_state
from pgtrickle.apply.result_rows import carried_columns
from pgtrickle.model.auxiliary import owner_id, state_suffix
from pgtrickle.model.carrier import Field
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import FirstRows, MergedGroups, Output, ReplacedGroups, RowsTarget, Target
from pgtrickle.postgres.connection import Connection, sql

_Column = tuple[str, str, str | None]
"""The name, type and collation of a column."""

_HASH_FUNCTION = sql.SQL("""
do $body$
declare
    part text;
    number integer := 0;
    parts text[] := '{{}}';
begin
    foreach part in array {types}::text[] loop
        number := number + 1;
        begin
            execute 'select hash_record_extended(row(null::' || part || '), 0)';
            parts := parts || ('$' || number);
        exception when undefined_function then
            -- of a type outside of pg_catalog, equal values may have different texts
            if position('.' in part) = 0 or right(part, 2) = '[]' then
                parts := parts || ('pgtrickle_internal.value_text($' || number || ')');
            end if;
        end;
    end loop;
    execute 'create or replace function ' || {name} || '(' || array_to_string({types}::text[], ', ')
        || ') returns bigint immutable parallel safe language sql return hash_record_extended(row('
        || coalesce(nullif(array_to_string(parts, ', '), ''), 'true') || '), 0)';
end $body$
""")

_EMPTY = sql.SQL("""
do $body$
begin
    lock table {table} in access exclusive mode nowait;
    truncate table {table};
exception when lock_not_available then
    null; -- a straggling task still writes; no later run reads what it leaves
end $body$
""")


def state_table(state_id: int) -> RelationName:
    """The table that holds the groups of a stream table."""
    return RelationName(STATE_SCHEMA, f"state_{state_suffix(state_id)}")


def staging_table(state_id: int) -> RelationName:
    """The table into which Spark's tasks copy the rows of a run."""
    return RelationName(STATE_SCHEMA, f"staging_{state_suffix(state_id)}")


def results_table(state_id: int) -> RelationName:
    """The same for a run whose snapshot the tasks cannot share."""
    return RelationName(STATE_SCHEMA, f"results_{state_suffix(state_id)}")


def query_staging_table(state_id: int) -> RelationName:
    """The table for the answer of the defining query, if PostgreSQL evaluates it."""
    return RelationName(STATE_SCHEMA, f"answer_{state_suffix(state_id)}")


def hash_function(state_id: int) -> RelationName:
    """The function that hashes the key of a group."""
    return RelationName(STATE_SCHEMA, f"hash_{state_suffix(state_id)}")


def create_storage(connection: Connection, state_id: int, target: Target) -> None:
    """Create the state and staging tables of a target, unless they exist."""
    create_staging(connection, staging_table(state_id), target)
    _create_states(connection, state_id, target)
    # PostgreSQL refuses to delete rows of a published table that has no replica identity
    connection.execute("select pgtrickle_internal.identify_state(%s)", (owner_id(state_id),))


def _create_states(connection: Connection, state_id: int, target: Target) -> None:
    match target:
        case RowsTarget():
            return
        case FirstRows():
            create_ordered_state(connection, state_id, target)
            return
        case MergedGroups():
            slots = [(slot.name, slot.pg_type, slot.change.carrier.collation) for slot in target.slots]
            columns = [(target.count, "bigint", None), *slots]
        case ReplacedGroups():
            columns = list(map(_declared, target.values))
        case _:
            assert_never(target)
    _create_state(connection, state_id, list(map(_declared, target.keys)), columns)


def create_staging(connection: Connection, table: RelationName, target: Target) -> None:
    """Create a table for the rows that tasks write, unless it exists."""
    columns = comma_list(
        column_definition(column.name, column.sql_type) for column in carried_columns(target)
    )
    connection.execute(
        sql.SQL(
            "create unlogged table if not exists {} (run bigint, part integer, attempt bigint, {})"
            " with (autovacuum_enabled = off)"
        ).format(relation(table), columns),
        {},
    )


def create_query_staging(connection: Connection, state_id: int, columns: Iterable[Output]) -> RelationName:
    """Create the table for the answer of the defining query, unless it exists."""
    table = query_staging_table(state_id)
    connection.execute(
        sql.SQL("create unlogged table if not exists {} ({}) with (autovacuum_enabled = off)").format(
            relation(table), comma_list(column_definition(column.name, column.pg_type) for column in columns)
        ),
        {},
    )
    return table


def empty_staging(connection: Connection, table: RelationName) -> None:
    """Truncate a staging table if nobody uses it; a DELETE would leave dead rows behind."""
    connection.execute(_EMPTY.format(table=relation(table)), {})


def _declared(field: Field) -> _Column:
    return field.name, field.carrier.pg_type, field.carrier.collation


def _create_state(connection: Connection, state_id: int, keys: list[_Column], values: list[_Column]) -> None:
    # free space on each page lets an update stay there, without touching the index
    connection.execute(
        sql.SQL("create table if not exists {} ({}) with (fillfactor = 80)").format(
            relation(state_table(state_id)),
            comma_list(column_definition(*column) for column in (*keys, *values)),
        ),
        {},
    )
    if not keys:
        return
    types = sql.Literal([pg_type for _, pg_type, _ in keys])
    connection.execute(_HASH_FUNCTION.format(types=types, name=sql.Literal(hash_function(state_id).sql)))
    _index_state(connection, state_id, (name for name, *_ in keys))


def _index_state(connection: Connection, state_id: int, keys: Iterable[str]) -> None:
    connection.execute(
        sql.SQL("create index if not exists {} on {} ({}({}))").format(
            identifier(_state_index(state_id).name),
            relation(state_table(state_id)),
            relation(hash_function(state_id)),
            comma_list(map(identifier, keys)),
        ),
        {},
    )


@contextmanager
def indexing_afterwards(
    connection: Connection, state_id: int, target: MergedGroups | ReplacedGroups
) -> Iterator[None]:
    """Fill the empty state of groups without its index, which is built at the end."""
    connection.execute(sql.SQL("drop index if exists {}").format(relation(_state_index(state_id))), {})
    yield
    if target.keys:
        _index_state(connection, state_id, (key.name for key in target.keys))


def _state_index(state_id: int) -> RelationName:
    return RelationName(STATE_SCHEMA, f"state_{state_suffix(state_id)}_key")
