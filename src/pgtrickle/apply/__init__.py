"""From the rows of a delta program to a correct stream table, in the transaction that claimed it."""

from pgtrickle.apply.applying import apply_changes, replace_all, replace_from_query_staging
from pgtrickle.apply.merging import groups_to_rescan
from pgtrickle.apply.rows import ArrayRows, CarriedColumn, Rows, StagedRows, carried_columns
from pgtrickle.apply.storage import (
    create_query_staging,
    create_storage,
    empty_staging,
    query_staging_table,
    staging_table,
    state_table,
)
from pgtrickle.apply.writing import Applied

__all__ = [
    "Applied",
    "ArrayRows",
    "CarriedColumn",
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
]
