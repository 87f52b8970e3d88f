"""Which rows of an operator are needed, and how a need passes to the columns below.

A restriction never has to be exact: it has to keep every row that can matter. So a need may
always be widened: to fewer of its columns, and at last to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pgtrickle.model.carrier import Field
from pgtrickle.plan.operators import Evaluated, Operator, Scan, Values
from pgtrickle.plan.reads import KeyColumns


@dataclass(frozen=True, slots=True)
class Need:
    """Rows whose `columns` are among the keys in `providers` are needed.

    Without columns all rows are needed if a provider has any row. Providers of None are no
    condition at all: everything is needed.

    With a `comparison`, `bound` is what the providers hold: of the one column, the values between the bounds
    are needed, or those that compare so with a bound where another one is null.
    """

    columns: tuple[str, ...]
    providers: tuple[KeyColumns, ...] | None
    is_null_safe: bool
    comparison: str | None = None
    bound: Field | None = None

    def between(self, comparison: str, bound: Field) -> Need:
        """The need for the values that a bound passes as it moves, if it is for the values of a column."""
        return replace(self, comparison=comparison, bound=bound) if self.columns else self

    def over(self, place: Callable[[str], str | None]) -> Need:
        """The need over other columns; those that have no place are given up."""
        kept = [(i, place(name)) for i, name in enumerate(self.columns)]
        return self._of([(i, name) for i, name in kept if name is not None])

    def within(self, names: frozenset[str]) -> Need:
        """The need with only the columns among these names."""
        return self._of([(i, name) for i, name in enumerate(self.columns) if name in names])

    @property
    def gate(self) -> Need:
        """The need for all rows, if there is any key."""
        return self._of([])

    def _of(self, kept: list[tuple[int, str]]) -> Need:
        if self.providers is None:
            return self
        providers = [KeyColumns(p.read, tuple(p.fields[i] for i, _ in kept)) for p in self.providers]
        names, unique = tuple(name for _, name in kept), tuple(dict.fromkeys(providers))
        if not kept:
            return Need((), unique, is_null_safe=False)
        return replace(self, columns=names, providers=unique)


Needs = tuple[Need, ...]
"""Rows are needed for any of these."""

EVERYTHING = Need((), None, False)


def needs_below(needs: Needs, places: Mapping[str, str]) -> Needs:
    """The needs over the columns of a child, given which of them each column is."""
    return tuple(dict.fromkeys(need.over(places.get) for need in needs))


def unique_needs(needs: Iterable[Need]) -> Needs:
    """The needs, each once."""
    return tuple(dict.fromkeys(needs))


class Binder(Protocol):
    """What the rules ask of the pass that binds a tree: see `passes/bind`."""

    def bind(self, op: Operator, needs: Needs) -> Operator:
        """The tree over reads that meet these needs."""

    def bind_region(self, op: Operator, needs: Needs) -> Operator:
        """Connected inner joins, and the filters between them, over reads that meet these needs."""

    def is_region(self, op: Operator) -> bool:
        """Whether the operator is the top of connected inner joins."""

    def read_scan(self, op: Scan, needs: Needs) -> Operator:
        """The change of a source, and the rows of it that meet these needs."""

    def read_constant(self, op: Values) -> Operator:
        """Rows that are always the same."""

    def read_answer(self, op: Evaluated, needs: Needs) -> Operator:
        """What PostgreSQL evaluates over the rows that the change and these needs reach."""

    def is_changed(self, op: Operator) -> bool:
        """Whether a source below has changed."""

    def keys(self, op: Operator, needs: Needs, pairs: list[tuple[str, str]], *, is_null_safe: bool) -> Needs:
        """What the changed and the needed rows of `op` need of the columns they are paired with."""

    def changed_keys(self, op: Operator, pairs: Iterable[tuple[str, str]], *, is_null_safe: bool) -> Needs:
        """What the changed rows of `op` need of columns: pairs of a target and a column of `op`."""

    def touched_groups(self, op: Operator) -> Needs:
        """The groups of `op` that must be read as a whole because they changed."""

    def keys_of_groups(self, op: Operator, pairs: list[tuple[str, str]]) -> Needs:
        """What the changed groups at the top of `op` need of the rows that are joined with them."""
