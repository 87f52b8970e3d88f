"""What a program reads from PostgreSQL, and what Spark computes with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pgtrickle.model.carrier import Field
from pgtrickle.model.source import Source

WEIGHT = "weight"
"""The column that a read, and the result of a program, has beside its fields: how often the row counts."""

AGAIN = "again"
"""The column of a read that tells whether an earlier read of the same source has the row too."""


class ReadKind(Enum):
    """What a read takes from PostgreSQL."""

    CHANGES = "changes"
    ROWS = "rows"
    ANSWER = "answer"


class Version(Enum):
    """At which end of the window an answer is evaluated, or which rows of both ends it gives."""

    NOW = "now"
    BEFORE = "before"
    CHANGED = "changed"
    """What differs: a weight above zero for rows of now, below zero for rows of before."""
    STAYED = "stayed"
    """Rows of both ends, as often as both have them."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Fields of an earlier read whose values are keys."""

    read: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Finds rows whose key is among those of earlier reads.

    `columns` is the key as SQL over the alias `t`; `keys` are its carried fields, in the same order.
    Several providers add up. A null key matches null rows only where `is_null_safe`. Without
    columns it finds every row, but only if a provider has any: a gate.

    With a `comparison` the keys are bounds of the one column: it finds the values between them, and where one
    of them is null, the values that compare so with another.
    """

    columns: tuple[str, ...]
    keys: tuple[Field, ...]
    providers: tuple[KeyColumns, ...]
    is_null_safe: bool
    comparison: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A relation that the query of an answer reads by `name`: rows of a source, and their change.

    Where it is not `is_reached`, only the change is part of it. What `is_recursed` is read again for
    each step of a recursion.
    """

    name: str
    rows: Read
    change: Read | None
    is_reached: bool
    is_recursed: bool = False


@dataclass(frozen=True, slots=True)
class Closure:
    """How the stored rows of a recursion change when some of its derivations do.

    The query of the read gives derivations: `made` are the columns of the derived row, `origin` those of the
    stored row that it is derived from, and `is_first` is 1 if it comes from the base instead. `columns` are
    the columns of the stream table with their types, and `equality` the operators of these types. `base` is
    the base as SQL; `from_gone`, `from_kept` and `from_new` are the step over the relations of these names
    (`changes/recursions.py`). All have the columns `made`.
    """

    columns: tuple[tuple[str, str], ...]
    equality: tuple[str, ...]
    made: tuple[str, ...]
    origin: tuple[str, ...]
    is_first: str
    base: str
    from_gone: str
    from_kept: str
    from_new: str
    is_all: bool


@dataclass(frozen=True, slots=True)
class Read:
    """One relation read from PostgreSQL under the snapshot of the refresh.

    `expressions` gives each field as SQL over the alias `t` of what is read: the window of changes
    of the source; rows of the source that one of `lookups` finds (all rows if there are none); or
    the rows of `query`, which PostgreSQL evaluates over `parts` at a `version`. `uses` names the
    source's columns that occur in them and in the condition.

    Rows are read as unchanged ones: where the source `is_changed`, what the window inserted is
    taken off again, by a negative weight. Rows that one of `earlier` finds too are marked AGAIN.
    A condition that `follows_clock` has the clock's sign where the time of either end goes.
    With a `closure`, the read gives how the rows of a recursion change, and its query the derivations.
    `by_index` is the same query for keys without nulls, over a relation `keys` with the columns `k1 … kn`:
    PostgreSQL answers it from an index, once for each key.
    """

    name: str
    kind: ReadKind
    source: Source | None
    query: str | None
    fields: tuple[Field, ...]
    expressions: tuple[str, ...]
    uses: tuple[str, ...] = ()
    condition: str | None = None
    lookups: tuple[Lookup, ...] = ()
    earlier: tuple[Lookup, ...] = ()
    is_changed: bool = False
    follows_clock: bool = False
    parts: tuple[Part, ...] = ()
    version: Version = Version.NOW
    closure: Closure | None = None
    by_index: str | None = None


class Role(Enum):
    """At which end of the window the rows of a read are there, and how often."""

    CHANGE = "change"
    """A weight below zero: that often before. Above zero: that often now."""
    BOTH = "both"
    """Its weight, at both ends."""
    ONCE = "once"
    """Each row counts once, at both ends: the read has no weight."""
    NOW = "now"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Input:
    """A relation that Spark reads by `name`: several reads with the same fields, and two weights."""

    name: str
    fields: tuple[Field, ...]
    reads: tuple[tuple[str, Role], ...]
