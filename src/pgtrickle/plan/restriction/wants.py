"""Which rows of an operator are needed, and how a need passes to the columns below.

A restriction never has to be exact: it has to keep every row that can matter. So a need may
always be widened: to fewer of its columns, and at last to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pgtrickle.plan.reads import KeyColumns


@dataclass(frozen=True, slots=True)
class Want:
    """Rows whose `columns` are among the keys in `providers` are needed.

    Without columns all rows are needed if a provider has any row. Providers of None are no
    condition at all: everything is needed.
    """

    columns: tuple[str, ...]
    providers: tuple[KeyColumns, ...] | None
    is_null_safe: bool

    def over(self, place: Callable[[str], str | None]) -> Want:
        """The want over other columns; those that have no place are given up."""
        kept = [(i, place(name)) for i, name in enumerate(self.columns)]
        return self._of([(i, name) for i, name in kept if name is not None])

    def within(self, names: frozenset[str]) -> Want:
        """The want with only the columns among these names."""
        return self._of([(i, name) for i, name in enumerate(self.columns) if name in names])

    @property
    def gate(self) -> Want:
        """The need for all rows, if there is any key."""
        return self._of([])

    def _of(self, kept: list[tuple[int, str]]) -> Want:
        if self.providers is None:
            return self
        providers = [KeyColumns(p.read, tuple(p.fields[i] for i, _ in kept)) for p in self.providers]
        is_null_safe = self.is_null_safe if kept else False
        return Want(tuple(name for _, name in kept), tuple(dict.fromkeys(providers)), is_null_safe)


Needs = tuple[Want, ...]
"""Rows are needed for any of these."""

EVERYTHING = Want((), None, False)


def renamed(needs: Needs, places: Mapping[str, str]) -> Needs:
    """Needs over the columns that these stand for."""
    return tuple(dict.fromkeys(want.over(places.get) for want in needs))


def each(needs: Iterable[Want]) -> Needs:
    """The needs, each once."""
    return tuple(dict.fromkeys(needs))
