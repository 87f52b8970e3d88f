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
    """A database by its alias. `reference` names it in the configuration; `reader` is our name there.

    With the `cdc_mode` wal, nothing of ours is installed there, and `position` is how far its log is decoded.
    """

    alias: str
    reference: str
    reader: str
    place: str | None
    is_detached: bool
    cdc_mode: str
    position: str | None

    @property
    def is_decoded(self) -> bool:
        """Whether its changes come from its log, and not from triggers."""
        return self.cdc_mode == "wal"


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """A table of an attached database.

    `relation` is its stand-in here; None until it exists. `wanted` are the columns that stream tables read,
    none if no stream table does. Our copy of `followed` columns shows the snapshot `frontier` of the other
    database, or the `position` of its log; both are None if it has to be compared with the table.
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
    position: str | None
    last_error: str | None

    @property
    def is_followed(self) -> bool:
        """Whether the other database keeps changes for us."""
        return bool(self.followed) or self.is_filled

    @property
    def is_filled(self) -> bool:
        """Whether our copy equals the table at a known point, and need not be compared."""
        return self.frontier is not None or self.position is not None

    @property
    def is_complete(self) -> bool:
        """Whether our copy has every column that stream tables read, at a known point."""
        return self.is_filled and set(self.wanted) <= set(self.followed)

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
