"""What a refresh asks of a compiled query: the program for each window, and for the first load."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.program import Program


class QueryPrograms(ABC):
    """The programs of a query that can be followed, whether it was compiled just now or long ago."""

    @property
    @abstractmethod
    def sources(self) -> frozenset[RelationId]:
        """The tables it reads."""

    @property
    @abstractmethod
    def clocked(self) -> frozenset[RelationId]:
        """The tables of which rows enter and leave as time passes."""

    @property
    @abstractmethod
    def asks_on_apply(self) -> bool:
        """Whether applying a change may read the sources: then it happens in the snapshot of the reads."""

    @abstractmethod
    def program(self, changed: frozenset[RelationId]) -> Program | None:
        """The program for a window in which these sources may have changed; None if nothing follows."""

    @abstractmethod
    def initial(self) -> Program:
        """The program of the first load."""
