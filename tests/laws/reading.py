"""Makes the reads of a program in plain Python, from nothing but what the reads say of themselves."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pgtrickle.plan.program import KeyColumns, Lookup, Read, ReadKind
from tests.laws.expressions import is_true, parsed, value
from tests.laws.zsets import Row, World, ZSet, folded


def read_all(reads: tuple[Read, ...], world: World) -> World:
    """The world with all reads made, one after the other, each restricted by those before it."""
    seen = World(world.old, world.new)
    for number, read in enumerate(reads):
        seen.reads[read.name] = _rows(read, reads[:number], seen)
    return seen


def provided(providers: tuple[KeyColumns, ...], reads: tuple[Read, ...], world: World) -> set[Row]:
    """The keys that the providers hold together."""
    known = {read.name: [f.name for f in read.fields] for read in reads}
    keys = set()
    for provider in providers:
        positions = [known[provider.read].index(name) for name in provider.fields]
        keys |= {tuple(row[position] for position in positions) for row in world.reads[provider.read]}
    return keys


def _rows(read: Read, earlier: tuple[Read, ...], world: World) -> ZSet:
    assert read.source is not None
    relation = read.source.relation
    is_change = read.kind is ReadKind.CHANGES
    rows = folded(world.change(relation)) if is_change else world.new[relation]
    condition = parsed(read.condition) if read.condition else None
    lookups = [(lookup, provided(lookup.providers, earlier, world)) for lookup in read.lookups]
    found: ZSet = Counter()
    for row, weight in rows.items():
        known = dict(zip((c.name for c in read.source.columns), row, strict=True))
        if is_true(condition, known) and all(_matches(lookup, keys, known) for lookup, keys in lookups):
            assert set(read.uses) <= set(known)
            used = {name: known[name] for name in read.uses}
            found[tuple(value(parsed(text), used) for text in read.expressions)] += weight
    return found


def _matches(lookup: Lookup, keys: set[Row], row: dict[str, Any]) -> bool:
    key = tuple(value(parsed(text), row) for text in lookup.columns)
    return key in keys and (lookup.is_null_safe or None not in key)
