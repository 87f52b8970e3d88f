"""Tables of other databases that stream tables read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId

ORIGIN_KINDS: Final = ("r", "p")
"""What can be followed: tables and partitioned tables."""


@dataclass(frozen=True, slots=True)
class AttachedDatabase:
    """A database by its alias. `reference` names it in the configuration; `reader` is our name there."""

    alias: str
    reference: str
    reader: str
    place: str | None
    is_detached: bool


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """A table of an attached database.

    `relation` is its stand-in here; None until it exists. `wanted` are the columns that stream tables read,
    none if no stream table does. `frontier` is the snapshot of the other database that our copy of
    `followed` columns shows; None if it has to be compared with the table.
    """

    id: int
    schema: str
    name: str
    relation: RelationId | None
    is_stand_in: bool
    is_read: bool
    wanted: tuple[str, ...]
    definition: dict[str, Any] | None
    followed: tuple[str, ...]
    frontier: Frontier | None
    last_error: str | None

    @property
    def is_followed(self) -> bool:
        """Whether the other database keeps changes for us."""
        return bool(self.followed) or self.frontier is not None

    def key(self) -> tuple[str, ...]:
        """Columns by which a row of the copy is found: those of a unique key, or of any index.

        They are never null, so that an equality finds them.
        """
        assert self.definition is not None
        never_null = {c["name"] for c in self.definition["columns"] if c["is_never_null"]}
        for columns in (*self.definition["keys"], *self.definition["indexes"]):
            if set(columns) <= never_null & set(self.wanted):
                return tuple(columns)
        return ()
