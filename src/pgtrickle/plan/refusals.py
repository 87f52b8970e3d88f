"""The errors for queries that deltas cannot follow."""

from __future__ import annotations

from pgtrickle.model.errors import UnsupportedQuery

_HINT = "use the mode AUTO or FULL: refresh_mode => 'AUTO'"


class Correlated(UnsupportedQuery):
    """A reference to a surrounding query stands where no join can reach it."""


def refuse(what: str) -> UnsupportedQuery:
    """The error for a part of a query that deltas cannot follow."""
    return UnsupportedQuery(f"{what} cannot be followed incrementally", hint=_HINT)


def refuse_correlation(what: str) -> Correlated:
    """The error for a correlation that has to be resolved further out, or not at all."""
    return Correlated(f"{what} cannot be followed incrementally", hint=_HINT)
