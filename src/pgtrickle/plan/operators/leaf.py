"""What was read of a source: its change, and the unchanged rows that matter."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.model.carrier import Field
from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.scan import Scan
from pgtrickle.plan.program import Input, Read, Role


@dataclass(frozen=True, slots=True)
class Leaf(Operator):
    """A scan whose rows come from reads; `change` is None where the source has not changed."""

    scan: Scan
    change: Read | None
    rows: tuple[Read, ...]

    @property
    def input(self) -> Input:
        """What Spark reads of it."""
        changes = [(self.change.name, Role.CHANGE)] if self.change else []
        reads = (*changes, *((read.name, Role.BOTH) for read in self.rows))
        return Input(f"both_{reads[0][0]}", _fields(self), reads)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns


@dataclass(frozen=True, slots=True)
class Answer(Operator):
    """Rows that PostgreSQL evaluated: as they are now, and as they were before if that differs."""

    columns_: tuple[Column, ...]
    now: Read
    before: Read | None

    @property
    def input(self) -> Input:
        """What Spark reads of it."""
        stays = Role.ONCE if self.before is None else Role.NOW
        gone = ((self.before.name, Role.BEFORE),) if self.before else ()
        return Input(f"both_{self.now.name}", _fields(self), ((self.now.name, stays), *gone))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_


@dataclass(frozen=True, slots=True)
class Nothing(Operator):
    """No rows."""

    columns_: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_


def _fields(op: Operator) -> tuple[Field, ...]:
    return tuple(Field(column.name, column.carrier) for column in op.columns)
