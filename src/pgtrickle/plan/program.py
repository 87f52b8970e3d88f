"""A delta program: what to read from PostgreSQL, what Spark computes of it, how the result is applied.

Programs are values. The same program runs on the small and on the distributed path; only the
binding of its reads differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pgtrickle.model.carrier import Field
from pgtrickle.plan.reads import Input, Read


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the stream table and the SQL that gives it, evaluated by PostgreSQL on apply.

    `pg_type` is the type below the `domain` that the column may have in the stream table, `collation` is None
    for the default one.
    """

    name: str
    pg_type: str
    sql: str
    domain: str | None = None
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class RowsTarget:
    """Weighted rows go straight into the stream table.

    `fields` are what Spark returns beside the weight; `outputs` are SQL over the restored fields,
    by their quoted names. `key` names output columns that are unique together, if any are known.
    """

    fields: tuple[Field, ...]
    outputs: tuple[Output, ...]
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Cut:
    """Where an ordered result ends: by which of its hidden columns it is ordered, and how far it goes."""

    order: tuple[tuple[int, bool, bool], ...]
    """The number of a hidden column, whether it is descending, whether nulls come first."""
    limit: int | None
    offset: int
    has_ties: bool


class Merge(Enum):
    """How a slot of a group's state takes in a change."""

    ADD = "add"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Slot:
    """One value that a group keeps in its state table.

    An ADD slot takes the field `change`. A MIN or MAX slot takes `change`, the best value that
    came in, and `removed`, the best value that went away: where that reaches the stored one and
    nothing at least as good came in, the group is scanned again.
    """

    name: str
    pg_type: str
    merge: Merge
    change: Field
    removed: Field | None = None


@dataclass(frozen=True, slots=True)
class MergedGroups:
    """Groups whose state is merged with the change of each group.

    Spark returns per changed group: the key fields, `count` (the change of its number of rows, a
    bigint), and the fields of the slots. The state table has the restored key columns, a bigint
    `count` and the slots. `having` and `outputs` are SQL over these names. `rescan` reads the
    extrema of the groups looked up by its only lookup; its fields are the keys, then the MIN and
    MAX slots in their order. Without keys there is one group, which always exists.

    With a `cut` the stream table shows only the first groups, in the order of the `hidden` columns.
    """

    keys: tuple[Field, ...]
    count: str
    slots: tuple[Slot, ...]
    having: str | None
    outputs: tuple[Output, ...]
    key: tuple[str, ...] | None
    rescan: Read | None
    cut: Cut | None = None
    hidden: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplacedGroups:
    """Groups that PostgreSQL evaluated again and that replace the stored ones.

    Spark returns the key fields, the value fields and a weight: weight 1 is a group as it is now,
    weight 0 (values null) names a group that may have changed. A named group without a new row
    is gone. The state table has the restored keys and values. Keys may repeat among weight 0.
    """

    keys: tuple[Field, ...]
    values: tuple[Field, ...]
    having: str | None
    outputs: tuple[Output, ...]
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Weighted rows go into a state that holds the first rows in order; the table shows a cut of it.

    `hidden` are further columns of the state, by which it is ordered. `query` gives the rows of the
    state from nothing, its columns named like the fields: it is asked when too few rows are left.
    The state holds every row that is not after the last of the `depth` rows it was filled with.
    """

    fields: tuple[Field, ...]
    outputs: tuple[Output, ...]
    hidden: tuple[Output, ...]
    cut: Cut
    query: str
    depth: int | None
    key: tuple[str, ...] | None = None


Target = RowsTarget | MergedGroups | ReplacedGroups | FirstRows


@dataclass(frozen=True, slots=True)
class Program:
    """Everything one refresh does between its snapshot and its commit.

    `spark_sql` reads views named like the `inputs`; other reads only give keys. Its columns are the
    target's fields in order, then `weight` (RowsTarget, ReplacedGroups) or the count (MergedGroups,
    between keys and slots). Where PostgreSQL computes everything, it is empty, and the only read has these
    columns.

    `passes` is for rows that Spark would only hand on: the change of the table is the change that the only
    read finds, and each field of the target is the field of the read with this name.
    """

    reads: tuple[Read, ...]
    spark_sql: str
    target: Target
    inputs: tuple[Input, ...] = ()
    passes: tuple[str, ...] | None = None
