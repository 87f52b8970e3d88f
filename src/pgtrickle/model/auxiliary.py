"""Auxiliary results: inner results of a query that are kept beside its stream table.

Each has a number of its own below zero. It stands for the relation where a plan reads it, and for the stream
table where the state of its groups is kept, so that neither is ever taken for another one.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pgtrickle.model.names import RelationName

MOST_NUMBERS: Final = 1_000_000
_SCHEMA: Final = "pgtrickle_state"


class AuxiliaryUse(Enum):
    """Whether inner results of a stream table are kept."""

    AUTO = "auto"
    """Where a change would otherwise read a whole table."""
    ALWAYS = "always"
    """Wherever it is possible."""
    NEVER = "never"


def auxiliary_id(stream_table: int, number: int) -> int:
    """The id of an auxiliary result of a stream table."""
    return -(stream_table * MOST_NUMBERS + number)


def owner_id(identifier: int) -> int:
    """The id of the stream table that a result belongs to; that of a stream table is its own."""
    return identifier if identifier >= 0 else -identifier // MOST_NUMBERS


def state_suffix(identifier: int) -> str:
    """How the names of tables end that hold what is kept of a stream table or an auxiliary result."""
    return str(identifier) if identifier >= 0 else f"{owner_id(identifier)}_{-identifier % MOST_NUMBERS}"


def auxiliary_table(identifier: int) -> RelationName:
    """The table with the rows of an auxiliary result."""
    return RelationName(_SCHEMA, f"auxiliary_{state_suffix(identifier)}")


def moved_table(identifier: int) -> RelationName:
    """The table with the change that the running refresh made to an auxiliary result."""
    return RelationName(_SCHEMA, f"moved_{state_suffix(identifier)}")
