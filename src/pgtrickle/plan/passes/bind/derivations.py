"""The derivations of a recursion: which row of it is made of which.

R = base ∪ step(R), and where the step makes its rows of each row of R alone: step(R) = ⋃ made(r) for r in R

The derivations (made, r) over the rows that the stream table holds are a query without a recursion. So their
change is followed like that of any other query, by lookups, and only what it reaches is derived again
(`changes/recursions.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgtrickle.model.names import RelationName, quoted
from pgtrickle.model.source import STORED, PgType, Source, SourceColumn, SourceKind
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column, raw
from pgtrickle.plan.expressions.clock import has_clock
from pgtrickle.plan.operators import (
    Column,
    Filter,
    Itself,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    ScanColumn,
    TableFunction,
    UnionAll,
    Values,
)
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.reads import Closure

GONE, KEPT, NEW = quoted("rows that go"), quoted("rows that stay"), quoted("rows that come")
"""The relations that the step is evaluated over."""
ROW = quoted("row of the recursion")
"""The alias of one row of `GONE` or `NEW`, where the step is evaluated for each row."""

_IS_FIRST: Final = "is from the base"
_INTEGER: Final = PgType("integer", "integer", "b", "N")
_SEVERAL_FORMS: Final = frozenset({"numeric", "real", "double precision", "character"})
"""Types with values that are equal and not the same."""


@dataclass(frozen=True, slots=True)
class Derivations:
    """The derivations of a recursion as a query, and how the stored rows follow from their change."""

    query: Operator
    closure: Closure


def derivations_of(op: Recursive) -> Derivations | None:
    """The derivations over the stored rows; None if they are not stored, or not made of one row each."""
    itself = next(part for part in op.step.walk() if isinstance(part, Itself) and part.name == op.name)
    if op.stored is None or not _is_followable(op):
        return None
    step = _with_origin(op.step, itself)
    if step is None:
        return None
    flag = Column(_IS_FIRST, _INTEGER, carrier_of(_INTEGER))
    columns = (*op.base.columns, *itself.columns, flag)
    nulls = tuple(Expression(raw(f"null::{c.type.text}")) for c in itself.columns)
    first = Project(op.base, columns, (*_same(op.base.columns), *nulls, Expression(raw("1"))))
    stored = _replaced(step, itself, _stored_scan(itself, op.stored))
    made = (*_same(op.step.columns), *_same(itself.columns), Expression(raw("0")))
    later = Project(stored, (*op.step.columns, *itself.columns, flag), made)
    return Derivations(UnionAll((first, later)), _closure(op, itself, op.stored))


def _is_followable(op: Recursive) -> bool:
    """Whether stored rows are the same if they are equal, and nothing but a write changes the recursion."""
    scans = [part for part in op.walk() if isinstance(part, Scan)]
    return not any(has_clock(scan.condition) for scan in scans) and all(
        c.type.has_equality and c.type.deterministic and c.type.base not in _SEVERAL_FORMS for c in op.columns
    )


def _with_origin(op: Operator, itself: Itself) -> Operator | None:
    """The step with the columns of the row that it is made of; None if it may depend on several rows."""
    if op == itself:
        return op
    if not isinstance(op, (Project, Filter, Join, Mark, OuterJoin, TableFunction)):
        return None
    if isinstance(op, OuterJoin) and op.keeps_right:
        return None
    number = next(n for n, child in enumerate(op.children) if itself in child.walk())
    if number > 0 and not isinstance(op, Join):
        return None
    below = _with_origin(op.children[number], itself)
    if below is None:
        return None
    if isinstance(op, Project):
        missing = tuple(c for c in itself.columns if c.name not in op.names)
        return Project(below, (*op.columns, *missing), (*op.expressions, *_same(missing)))
    return op.with_children((*op.children[:number], below, *op.children[number + 1 :]))


def _replaced(op: Operator, old: Operator, new: Operator) -> Operator:
    if op == old:
        return new
    return op.with_children(tuple(_replaced(child, old, new) for child in op.children))


def _same(columns: tuple[Column, ...]) -> tuple[Expression, ...]:
    return tuple(column(c.name) for c in columns)


def _stored_scan(itself: Itself, stored: tuple[str, ...]) -> Scan:
    pairs = enumerate(zip(itself.columns, stored, strict=True), start=1)
    columns = tuple(SourceColumn(name, number, c.type, is_nullable=True) for number, (c, name) in pairs)
    source = Source(STORED, RelationName("", "the stream table"), SourceKind.STREAM_TABLE, columns)
    given = tuple(c.name for c in itself.columns)
    outputs = tuple(ScanColumn(c, column(c.name)) for c in itself.columns)
    return Scan(source, "stored", given, outputs)


def _closure(op: Recursive, itself: Itself, stored: tuple[str, ...]) -> Closure:
    names = ", ".join(map(quoted, stored))
    one_row = ", ".join(f"{ROW}.{quoted(name)}" for name in stored)
    rows = f"select {names} from "
    gone, new = (f"select {one_row}",) * 2 if op.is_all else (rows + GONE, rows + NEW)

    def step_over(query: str) -> str:
        read = Values(query, itself.columns)
        return _as_made(_replaced(op.step, itself, read), op.base)

    return Closure(
        columns=tuple((name, _type_text(c)) for name, c in zip(stored, op.columns, strict=True)),
        equality=tuple(c.type.equals for c in op.columns),
        made=tuple(c.name for c in op.base.columns),
        origin=tuple(c.name for c in itself.columns),
        is_first=_IS_FIRST,
        base=_as_made(op.base, op.base),
        from_gone=step_over(gone),
        from_kept=step_over(rows + KEPT),
        from_new=step_over(new),
        is_all=op.is_all,
    )


def _type_text(c: Column) -> str:
    return f"{c.type.text} collate {c.type.collation}" if c.type.collation else c.type.text


def _as_made(term: Operator, base: Operator) -> str:
    """A term under the names of the base's columns."""
    pairs = zip(term.columns, base.columns, strict=True)
    listed = ", ".join(f"t.{quoted(c.name)} as {quoted(own.name)}" for c, own in pairs)
    return f"select {listed} from ({postgres_sql(term)}) as t"
