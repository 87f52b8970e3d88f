"""Applies the rows of a program to a stream table, in the transaction that claimed it."""

from pgtrickle.apply.apply import apply_changes, replace_all, replace_from_query_staging
from pgtrickle.apply.destination import Destination
from pgtrickle.apply.merge import groups_to_rescan
from pgtrickle.apply.result_rows import ArrayRows, CarriedColumn, Rows, StagedRows, carried_columns
from pgtrickle.apply.storage import (
    create_query_staging,
    create_storage,
    empty_staging,
    query_staging_table,
    staging_table,
    state_table,
)
from pgtrickle.apply.stored_table import stored_table
from pgtrickle.apply.write import Applied

__all__ = [
    "Applied",
    "ArrayRows",
    "CarriedColumn",
    "Destination",
    "Rows",
    "StagedRows",
    "apply_changes",
    "carried_columns",
    "create_query_staging",
    "create_storage",
    "empty_staging",
    "groups_to_rescan",
    "query_staging_table",
    "replace_all",
    "replace_from_query_staging",
    "staging_table",
    "state_table",
    "stored_table",
]
