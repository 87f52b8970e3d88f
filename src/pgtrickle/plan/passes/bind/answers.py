"""Reads what PostgreSQL evaluates of a bound tree: now, and as it was before the window; or what differs."""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.plan.operators import Answer, Column, Leaf, Operator, Recursive, Values
from pgtrickle.plan.passes.bind.reads import Reads, lookup_by
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.reads import Closure, KeyColumns, Lookup, Part, Read, ReadKind, Role, Version
from pgtrickle.plan.rules.bound import relation_name
from pgtrickle.plan.rules.needs import Needs

_SEVERAL_FORMS = frozenset({"numeric", "real", "double precision"})
"""Types with values that are equal and not the same."""


def add_answer(bound: Operator, columns: tuple[Column, ...], kept: Needs, reads: Reads) -> Answer:
    """The rows of a bound tree, evaluated by PostgreSQL; only those that `kept` names, if it does."""
    leaves = _leaves(bound)
    parts = tuple(_part(leaf) for leaf in leaves)
    now = _read(postgres_sql(bound), columns, parts, _lookups(columns, kept))
    if not any(leaf.change for leaf in leaves):
        return Answer(columns, ((reads.add(now), Role.ONCE),))
    before = reads.add(replace(now, name="before", version=Version.BEFORE))
    return Answer(columns, ((reads.add(now), Role.NOW), (before, Role.BEFORE)))


def add_recursion(bound: Operator, columns: tuple[Column, ...], needs: Needs, reads: Reads) -> Answer:
    """The rows of a bound tree with a recursion in it: what differs, and of the rest what is needed.

    Sending every row that a recursion reaches would be too much: PostgreSQL compares them instead.
    """
    recursed = [leaf for part in bound.walk() if isinstance(part, Recursive) for leaf in _leaves(part)]
    leaves = _leaves(bound)
    parts = tuple(replace(_part(leaf), is_recursed=leaf in recursed) for leaf in leaves)
    needed = _lookups_of(columns, needs)
    whole = replace(_read(postgres_sql(bound), columns, parts, needed), name="recursion")
    if not any(leaf.change for leaf in leaves):
        return Answer(columns, ((reads.add(whole), Role.ONCE),))
    changed = replace(whole, name="change_of_recursion", version=Version.CHANGED, lookups=_gate(leaves))
    found = [(reads.add(changed), Role.CHANGE)]
    if needs:
        found.append((reads.add(replace(whole, version=Version.STAYED)), Role.BOTH))
    return Answer(columns, tuple(found))


def add_closure(bound: Operator, columns: tuple[Column, ...], closure: Closure, reads: Reads) -> Answer:
    """How the stored rows of a recursion change; the bound tree gives its derivations."""
    leaves = _leaves(bound)
    whole = _read(postgres_sql(bound), columns, tuple(map(_part, leaves)), _gate(leaves))
    changed = replace(whole, name="change_of_recursion", version=Version.CHANGED, closure=closure)
    return Answer(columns, ((reads.add(changed), Role.CHANGE),))


def add_constant(op: Values, reads: Reads) -> Answer:
    """Rows that are always the same."""
    read = reads.add(_read(postgres_sql(op), op.columns, (), ()))
    return Answer(op.columns, ((read, Role.ONCE),))


def _leaves(bound: Operator) -> list[Leaf]:
    return list(dict.fromkeys(part for part in bound.walk() if isinstance(part, Leaf)))


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
    """Every read of a leaf as one relation: the rows that any of the lookups finds."""
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
    return Part(relation_name(leaf.scan), rows, leaf.change, is_reached=bool(leaf.rows))


def _gate(leaves: list[Leaf]) -> tuple[Lookup, ...]:
    """Nothing differs unless one of the changes has rows."""
    moved = [leaf for leaf in leaves if leaf.change]
    if not all(_has_one_form(column) for leaf in moved for column in leaf.columns):
        return ()
    providers = tuple(KeyColumns(leaf.change.name, ()) for leaf in moved if leaf.change)
    return (Lookup((), (), providers, is_null_safe=False),)


def _has_one_form(column: Column) -> bool:
    """Whether values that a change takes for equal cannot be told apart: 1.0 and 1.00 can."""
    return column.type.deterministic and column.type.base not in _SEVERAL_FORMS


def _lookups_of(columns: tuple[Column, ...], needs: Needs) -> tuple[Lookup, ...]:
    """The lookups that find what is needed, the ones without a column included; none for everything."""
    carriers = {c.name: c.carrier for c in columns}
    found = []
    for need in needs:
        if need.providers is None:
            return ()
        keys = tuple(Field(name, carriers[name]) for name in need.columns)
        places = tuple(f"t.{quoted(name)}" for name in need.columns)
        found.append(lookup_by(places, keys, need))
    return tuple(found)


def _lookups(columns: tuple[Column, ...], kept: Needs) -> tuple[Lookup, ...]:
    """The lookups of the rows that are kept; none where some are kept by key and some whatever their key.

    A need without columns opens or closes the whole answer, as it does for the reads below. An aggregate
    without keys has a row over nothing, so its answer must close when they do.
    """
    is_by_key = {bool(need.columns) for need in kept}
    return _lookups_of(columns, kept) if len(is_by_key) == 1 else ()
