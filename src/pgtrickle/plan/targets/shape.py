"""The end of a plan: a shape gives the program for a window and for the first load."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.operators import Call, Operator
from pgtrickle.plan.program import Program


class Shape(ABC):
    """One way for a result to be maintained."""

    asks_on_apply = False
    """Whether applying a change may read the sources: then it happens in the snapshot of the reads."""

    operator: Operator
    """The tree whose changes are followed, with only the columns that are read."""

    merged_calls: tuple[Call, ...] = ()
    """The aggregates above the tree that Spark computes of its changes."""

    @abstractmethod
    def program(self, changed: frozenset[RelationId]) -> Program | None:
        """What to do when these sources have changed; None if that cannot matter."""

    @abstractmethod
    def initial(self) -> Program:
        """What to do to fill the stream table from nothing."""

    @abstractmethod
    def recomputation(self) -> Program:
        """The same, with all of it computed by PostgreSQL: its only read has the rows of the target."""

    @property
    @abstractmethod
    def description(self) -> str:
        """How the result is maintained, for explain."""
