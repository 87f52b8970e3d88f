"""What a refresh asks of a compiled query: the program for each window, and for the first load."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.program import Program, RowsTarget


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """An inner result that is kept beside the stream table, in the table that `source` describes.

    `reads` are the relations that it is made of, other auxiliary results among them. `indexes` are the
    columns by which it is looked up.
    """

    source: Source
    reads: frozenset[RelationId]
    programs: QueryPrograms
    indexes: tuple[tuple[str, ...], ...] = ()


def with_changed_auxiliaries(
    changed: frozenset[RelationId], auxiliaries: Iterable[Auxiliary]
) -> frozenset[RelationId]:
    """The changed relations, and the auxiliary results, given in their order, that may change with them."""
    for auxiliary in auxiliaries:
        if auxiliary.reads & changed:
            changed |= {auxiliary.source.relation}
    return changed


class QueryPrograms(ABC):
    """The programs of a query that can be followed, whether it was compiled just now or long ago."""

    auxiliaries: tuple[Auxiliary, ...] = ()
    """The inner results that are kept, each after those that it reads."""

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

    @property
    def has_state(self) -> bool:
        """Whether anything is kept beside the rows of the stream table."""
        return bool(self.auxiliaries) or not isinstance(self.recomputation().target, RowsTarget)

    @abstractmethod
    def program(self, changed: frozenset[RelationId]) -> Program | None:
        """The program for a window in which these sources may have changed; None if nothing follows."""

    @abstractmethod
    def initial(self) -> Program:
        """The program of the first load."""

    @abstractmethod
    def recomputation(self) -> Program:
        """The program that lets PostgreSQL compute all rows; its only read has the rows of the target."""


def programs_for_all(compiled: QueryPrograms) -> tuple[Program, ...]:
    """The programs of a window in which every source has changed: the query comes after what it keeps."""
    found = [auxiliary.programs.program(auxiliary.reads) for auxiliary in compiled.auxiliaries]
    return tuple(program for program in (*found, compiled.program(compiled.sources)) if program is not None)
