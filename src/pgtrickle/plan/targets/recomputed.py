"""Programs without Spark: PostgreSQL computes all rows of a target, in one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.program import Program, Target
from pgtrickle.plan.reads import WEIGHT, Read, ReadKind

BIGINT_CARRIER: Final = carrier_of(PgType("bigint", "bigint", "b", "N"))


def recomputed(query: str, fields: Sequence[Field], target: Target, *, has_weight: bool = False) -> Program:
    """A program whose only read is the query, with these fields as columns; each row may count once."""
    weight = [Field(WEIGHT, BIGINT_CARRIER)] if has_weight else []
    read = Read(
        name="all rows",
        kind=ReadKind.ANSWER,
        source=None,
        query=query,
        fields=(*fields, *weight),
        expressions=(*(f"t.{quoted(field.name)}" for field in fields), *("1::bigint" for _ in weight)),
    )
    return Program((read,), "", target)
