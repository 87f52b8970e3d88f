"""What PostgreSQL evaluates of a bound tree: now, and as it was before the window."""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.plan.lowering.postgres import leaf_name, postgres_sql
from pgtrickle.plan.operators import Answer, Column, Leaf, Operator, Values
from pgtrickle.plan.program import Lookup, Part, Read, ReadKind, Version
from pgtrickle.plan.restriction.reading import Reads
from pgtrickle.plan.restriction.wants import Needs


def answer_of(bound: Operator, columns: tuple[Column, ...], kept: Needs, reads: Reads) -> Answer:
    """The rows of a bound tree, evaluated by PostgreSQL; only those that `kept` names, if it does."""
    leaves = [part for part in bound.walk() if isinstance(part, Leaf)]
    parts = tuple(_part(leaf) for leaf in leaves)
    now = _read(postgres_sql(bound), columns, parts, _lookups(columns, kept))
    is_changed = any(leaf.change for leaf in leaves)
    before = reads.add(replace(now, name="before", version=Version.BEFORE)) if is_changed else None
    return Answer(columns, reads.add(now), before)


def constant(op: Values, reads: Reads) -> Answer:
    """Rows that are always the same."""
    return Answer(op.columns, reads.add(_read(postgres_sql(op), op.columns, (), ())), None)


def _read(query: str, columns: tuple[Column, ...], parts: tuple[Part, ...], kept: tuple[Lookup, ...]) -> Read:
    return Read(
        name="answer",
        kind=ReadKind.ANSWER,
        source=None,
        query=query,
        fields=tuple(Field(c.name, c.carrier) for c in columns),
        expressions=tuple(f"t.{quoted(c.name)}" for c in columns),
        lookups=kept,
        parts=parts,
    )


def _part(leaf: Leaf) -> Part:
    """All that was read of a leaf as one relation: rows that any of the lookups finds."""
    lookups = tuple(lookup for read in leaf.rows for lookup in read.lookups)
    is_whole = any(not read.lookups for read in leaf.rows)
    model = leaf.change or leaf.rows[0]
    rows = replace(
        model,
        name=f"rows_of_{leaf.scan.alias}",
        kind=ReadKind.ROWS,
        lookups=() if is_whole else lookups,
        earlier=(),
        is_changed=leaf.change is not None,
    )
    return Part(leaf_name(leaf.scan), rows, leaf.change, is_reached=bool(leaf.rows))


def _lookups(columns: tuple[Column, ...], kept: Needs) -> tuple[Lookup, ...]:
    carriers = {c.name: c.carrier for c in columns}
    found = []
    for want in kept:
        if not want.columns or want.providers is None:
            return ()
        keys = tuple(Field(name, carriers[name]) for name in want.columns)
        found.append(
            Lookup(tuple(f"t.{quoted(n)}" for n in want.columns), keys, want.providers, want.is_null_safe)
        )
    return tuple(found)
