"""Where the columns of an operator come from: the one place from which every other answer is derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.reads import KeyColumns


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """A column of a child whose value an operator passes on unchanged.

    Where it `is_padded`, the operator may put a null in its place, for a row without a partner.
    """

    child: int
    column: str
    is_padded: bool = False


Places = tuple[ColumnPlace, ...]
"""The places from one of which a value comes; none if the operator computes it."""


@dataclass(frozen=True, slots=True)
class OpenChild:
    """A child whose further columns would pass through an operator without changing its rows."""

    child: int
    is_padded: bool = False


FIRST_CHILD = (OpenChild(0),)

HeldBy = tuple[KeyColumns, ...] | None
"""The reads with every value that columns can have; none where there are no rows; None if unknown."""

FindReads = Callable[[Operator, tuple[str, ...]], HeldBy]
"""Finds the reads that hold the columns of a child."""


FindPlaces = Callable[[str], Places]
"""Finds the places of a column by its name."""


def same_columns(op: Operator) -> FindPlaces:
    """The provenance of an operator whose columns are those of its first child."""
    return lambda name: (ColumnPlace(0, name),)


def further_columns(op: Operator) -> FindPlaces:
    """The provenance of an operator that adds columns of its own to those of its first child."""
    passed_on = op.children[0].names
    return lambda name: (ColumnPlace(0, name),) if name in passed_on else ()


def own_columns(op: Operator) -> FindPlaces:
    """The provenance of an operator that makes all of its columns."""
    return lambda name: ()


def places_in_child(op: Operator, find_places: FindPlaces) -> Mapping[str, str]:
    """Which column of its only child each column of an operator is; computed ones are left out."""
    found = ((column.name, find_places(column.name)) for column in op.columns)
    return {name: places[0].column for name, places in found if places}


def reads_of_first_child(
    op: Operator, columns: tuple[str, ...], find_places: FindPlaces, find_reads: FindReads
) -> HeldBy:
    """The reads that hold columns which an operator passes on from its first child."""
    below = [find_places(name) for name in columns]
    if not all(below):
        return None
    return find_reads(op.children[0], tuple(places[0].column for places in below))


def reads_together(parts: list[HeldBy]) -> HeldBy:
    """The reads of several places, each once; unknown if one of them is."""
    found: list[KeyColumns] = []
    for part in parts:
        if part is None:
            return None
        found.extend(part)
    return tuple(dict.fromkeys(found))
