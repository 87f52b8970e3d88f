"""What a rule says of its operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any, Protocol

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.needs import Binder, Needs
from pgtrickle.plan.rules.provenance import FindPlaces, FindReads, HeldBy, OpenChild

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """Whether what is above may stop reading: because of a LIMIT, or because EXISTS, IN or ANY has an answer.

    For EXISTS PostgreSQL drops an ORDER BY, DISTINCT or GROUP BY below it.
    """

    is_cut: bool = False
    is_probed: bool = False


READ_TO_THE_END = EarlyStop()


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """The columns `names` that say to which group a row belongs, and those that the child has as they are.

    `is_row` if the operator has one row for each group, not the rows of the group.
    """

    names: Names
    pairs: tuple[tuple[str, str], ...]
    is_row: bool


LowerToPostgres = Callable[[Operator], str]
"""Writes a child as SQL for PostgreSQL."""

AskNullable = Callable[[Operator, str], bool]
"""Whether a column of a child can be null."""

AskUnique = Callable[[Operator, Set[str]], bool]
"""Whether columns identify the rows of a child."""

AskKey = Callable[[Operator], tuple[str, ...] | None]
"""The columns that identify each row of a child, if any are known."""

AskConditions = Callable[[Operator], Iterable[Expression]]
"""The conditions that every row of a child satisfies."""

Restrict = Callable[[Operator, Expression], Operator]
"""Restricts an operator by a condition over its columns."""


class LowerToSpark(Protocol):
    """Writes a child as Spark SQL; joins leave out the columns that are not needed."""

    def __call__(self, op: Operator, needed: Names | None = None, /) -> str: ...


class Pruner(Protocol):
    """Leaves out what is not read below."""

    def prune(self, op: Operator, names: Names) -> Operator:
        """The child with only these columns, and those that it reads itself."""

    def prune_to(self, op: Operator, names: list[str]) -> Operator:
        """The child with exactly these columns, in this order."""

    def prune_as_written(self, op: Operator, names: Names) -> Operator:
        """The child for PostgreSQL, which evaluates every call as the query has it."""

    def is_unique(self, op: Operator, names: Set[str]) -> bool:
        """Whether no two rows of the child agree in all these columns."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Everything the compiler knows about one operator; passes look it up by the type of the operator.

    No function goes down the tree by itself: it gets a function that asks the rule of a child.
    """

    label: Callable[[Any], str]
    """Its line in `explain`."""
    kind: Callable[[Any], RuleKind]
    """Which rows it needs besides the change."""
    bind: Callable[[Any, Needs, Binder], Operator]
    """The operator over children that are bound to what it needs of them.

    What changed, and what is needed of the operator, must be right and complete at both ends.
    """
    spark_sql: Callable[[Any, Names | None, LowerToSpark], str] | None
    """Its SELECT over rows with two weights, or None where Spark never evaluates it."""
    obstacle: Callable[[Any], str | None]
    """Why Spark cannot evaluate it exactly; None if it can. A refused expression is an obstacle too."""
    postgres_sql: Callable[[Any, LowerToPostgres], str]
    """Its SELECT over plain rows."""
    places: Callable[[Any], FindPlaces]
    """Where each of its columns comes from."""
    open_children: Callable[[Any], tuple[OpenChild, ...]]
    """The children whose further columns would pass through."""
    held_by: Callable[[Any, tuple[str, ...], FindReads], HeldBy]
    """The reads that together hold every combination of values that columns of the bound operator have."""
    is_nullable: Callable[[Any, str, AskNullable], bool]
    """Whether a column can be null, as far as the tables and conditions tell."""
    is_unique: Callable[[Any, Set[str], AskUnique], bool]
    """Whether no two rows agree in all columns of these names; nulls count as equal."""
    row_key: Callable[[Any, AskKey], tuple[str, ...] | None]
    """Columns that identify each row: () for a single row, None if none are known."""
    groups: Callable[[Any], GroupColumns | None]
    """The columns by which it groups the rows of its child, if it does."""
    prune: Callable[[Any, Names, Pruner], Operator]
    """The operator with only the columns that are read."""
    push: Callable[[Any, Expression, Restrict], Operator | None]
    """The operator over children restricted by a condition; None where the condition has to stay above."""
    tighten: Callable[[Any, Expression, Restrict], Operator]
    """The operator without the padding that a condition above it would reject anyway."""
    expressions: Callable[[Any], Iterable[Expression]]
    """The expressions that it evaluates."""
    spark_expressions: Callable[[Any], Iterable[str]]
    """What Spark computes for it, as `explain` shows it."""
    early_stops: Callable[[Any, EarlyStop], tuple[EarlyStop, ...]]
    """Whether PostgreSQL may stop reading each child, given whether it may stop reading the operator."""
    has_one_row: Callable[[Any], bool]
    """Whether it always has exactly one row, whatever its children have."""
    group_child: Callable[[Any], Operator | None]
    """The child to whose groups its rows belong, with at most one row for each row of that child."""
    widened_child: Callable[[Any, Set[str], AskUnique], Operator | None]
    """The child whose rows it only shows with more columns, if that child has all columns of these names."""
    conditions: Callable[[Any, AskConditions], Iterable[Expression]]
    """The conditions that every row of it is known to satisfy."""
    endless_part: Callable[[Any, AskConditions], str | None]
    """The part of it that PostgreSQL may never finish, although its children end; None if there is none."""
