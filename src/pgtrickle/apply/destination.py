"""Where the rows from Spark go, and what they change there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pgtrickle.apply.compose import comma_list, identifier, with_aliases
from pgtrickle.apply.finals import Finals, cte, outputs_of, restored_values
from pgtrickle.apply.merged_groups import merged_finals
from pgtrickle.apply.recording import MovedRows, Recording
from pgtrickle.apply.replaced_groups import replaced_finals
from pgtrickle.apply.result_rows import NativeRows, Rows, carried_columns, relation_of
from pgtrickle.apply.stored_table import StoredTable, stored_table
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import MergedGroups, ReplacedGroups, RowsTarget, Target
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import sql


@dataclass(frozen=True, slots=True)
class Destination:
    """A stream table, its state, and the target of the program whose rows go there.

    `match_columns` is the SQL by which the index of the table hashes each of its columns. `is_append_only`
    says that its changes usually only add rows, which then need not be folded and looked up. `recording` is
    where its changes are recorded, if they are.
    """

    name: RelationName
    match_columns: tuple[str, ...]
    state_id: int
    target: Target
    is_append_only: bool = False
    recording: Recording | MovedRows | None = None

    @property
    def may_append(self) -> bool:
        """Whether rows may be added without folding them; what is recorded is the folded change."""
        return self.is_append_only and self.recording is None

    @property
    def stored(self) -> StoredTable:
        """The stream table to write to."""
        outputs, key = self.target.outputs, self.target.key
        return stored_table(self.name, self.match_columns, outputs, key, self.recording)


def finals_of(
    state_id: int, target: RowsTarget | MergedGroups | ReplacedGroups, rows: Rows, rescanned: Rows | None
) -> Finals:
    """What these rows from Spark change in the stream table and its state."""
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
    values = names if isinstance(rows, NativeRows) else restored_values(target.fields, "r")
    scope = sql.SQL("(select {} from given r) x").format(
        comma_list([*with_aliases(values, names), sql.SQL("r.{}").format(weight)])
    )
    added = outputs_of(target.outputs, None, scope, sql.SQL("x.{}").format(weight))
    return Finals((cte("given", given.query),), added, None, None, given.parameters)
