"""How wide a query may be, so that its changes can be applied within PostgreSQL's limits."""

from __future__ import annotations

import pytest

from pgtrickle.model.carrier import INT as SPARK_INT
from pgtrickle.model.carrier import Carrier, Field
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.program import Merge, MergedGroups, Output, ReplacedGroups, RowsTarget, Slot, Target
from pgtrickle.plan.targets.widths import require_room

INT = Carrier("integer", SPARK_INT, "({})", "({})::integer", equality=True, ordering=True)


def fields(count: int) -> tuple[Field, ...]:
    return tuple(Field(f"f{number}", INT) for number in range(count))


def outputs(count: int) -> tuple[Output, ...]:
    return tuple(Output(f"c{number}", "integer", f"f{number}") for number in range(count))


def rows(count: int, key: tuple[str, ...] | None = None) -> RowsTarget:
    return RowsTarget(fields(count), outputs(count), key)


def merged(keys: int, slots: int) -> MergedGroups:
    kept = tuple(Slot(f"s{number}", "bigint", Merge.ADD, field) for number, field in enumerate(fields(slots)))
    return MergedGroups(fields(keys), "n", kept, None, outputs(keys), None, None)


def replaced(keys: int, values: int) -> ReplacedGroups:
    return ReplacedGroups(fields(keys), fields(values), None, outputs(keys), None)


@pytest.mark.parametrize("target", [rows(827, ("c0",)), rows(1590), merged(100, 480), replaced(100, 670)])
def test_what_has_room_is_followed(target: Target) -> None:
    require_room(target)


@pytest.mark.parametrize(
    "target",
    [rows(828, ("c0",)), rows(1591), merged(101, 0), merged(1, 551), replaced(101, 1), replaced(1, 826)],
)
def test_what_has_no_room_is_refused(target: Target) -> None:
    with pytest.raises(UnsupportedQuery, match="columns"):
        require_room(target)
