"""What stands for scans and answers once a plan is bound to its reads."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from pgtrickle.model.carrier import Field
from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.scan import Scan
from pgtrickle.plan.reads import Input, Read, Role


class InputLeaf(Operator):
    """A leaf whose rows Spark reads from an input."""

    __slots__ = ()

    @property
    @abstractmethod
    def input(self) -> Input:
        """What Spark reads of it."""


@dataclass(frozen=True, slots=True)
class Leaf(InputLeaf):
    """A scan whose rows come from reads: its change and the unchanged rows that matter.

    `change` is None where the source has not changed.
    """

    scan: Scan
    change: Read | None
    rows: tuple[Read, ...]

    @property
    def input(self) -> Input:
        changes = [(self.change.name, Role.CHANGE)] if self.change else []
        reads = (*changes, *((read.name, Role.BOTH) for read in self.rows))
        return Input(f"both_{reads[0][0]}", _fields(self), reads)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns


@dataclass(frozen=True, slots=True)
class Answer(InputLeaf):
    """Rows that PostgreSQL evaluated, in one read or in two that add up."""

    columns_: tuple[Column, ...]
    reads: tuple[tuple[Read, Role], ...]

    @property
    def input(self) -> Input:
        reads = tuple((read.name, role) for read, role in self.reads)
        return Input(f"both_{reads[0][0]}", _fields(self), reads)

    @property
    def is_changed(self) -> bool:
        """Whether its rows may differ between the ends of the window."""
        return any(role is not Role.ONCE for _, role in self.reads)

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
