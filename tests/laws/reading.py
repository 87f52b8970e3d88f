"""Makes the reads of a program in plain Python, from nothing but what the reads say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from pgtrickle.plan.expressions.clock import CLOCK
from pgtrickle.plan.operators import Answer, Leaf, Operator
from pgtrickle.plan.passes.bind import answers
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.reads import Lookup, Part, Read, ReadKind, Version
from pgtrickle.plan.rules.bound import relation_name
from tests.laws.expressions import Named, meaning
from tests.laws.rows import SIGNS, Row
from tests.laws.zsets import Bags, World, ZSet, folded, minus, over_leaves

Queries = dict[str, Operator]
"""Which tree each query of an answer was written from: here it is the tree that is evaluated."""

Found = tuple[Row, int, bool]
"""A row that was read, its weight, and whether an earlier read has it too."""

Condition = Callable[[Named], bool]


@contextmanager
def remembered() -> Iterator[Queries]:
    """What is written of trees for PostgreSQL meanwhile."""
    queries: Queries = {}

    def remember(op: Operator) -> str:
        text = postgres_sql(op)
        queries.setdefault(text, op)
        return text

    with patch.object(answers, "postgres_sql", remember):
        yield queries


@dataclass(frozen=True)
class Table:
    """What a read gave."""

    names: tuple[str, ...]
    found: tuple[Found, ...]

    def keys(self, fields: tuple[str, ...]) -> set[Row]:
        """The values of some columns, whatever the weights of their rows."""
        places = [self.names.index(name) for name in fields]
        return {tuple(row[i] for i in places) for row, _, _ in self.found}


@dataclass
class Reader:
    """Reads one after the other, each restricted by the keys that the ones before it found.

    With more than `many` keys a lookup gives up a column. Where `is_whole`, no lookup restricts
    anything, as when Spark reads sources in pieces. The keys of reads that are `lost` are not in memory:
    PostgreSQL finds them where a lookup stands alone, and else every row is found.
    """

    world: World
    queries: Queries
    many: int = 100
    is_whole: bool = False
    tables: dict[str, Table] = field(default_factory=dict)
    lost: Callable[[str], bool] = lambda name: False
    marked: frozenset[Lookup] = frozenset()

    def read_all(self, reads: tuple[Read, ...]) -> Mapping[str, Table]:
        """All reads in their order."""
        self.marked = frozenset(lookup for read in reads for lookup in read.earlier)
        of_kind = {
            ReadKind.CHANGES: self._changes,
            ReadKind.ROWS: self._rows,
            ReadKind.ANSWER: self._answer,
        }
        for read in reads:
            names = tuple(f.name for f in read.fields)
            self.tables[read.name] = Table(names, tuple(of_kind[read.kind](read)))
        return self.tables

    def _changes(self, read: Read) -> list[Found]:
        return [(row, weight, False) for row, weight in self._moved(read, _always).items()]

    def _rows(self, read: Read) -> list[Found]:
        """Rows as they are now, less those that the window inserted."""
        found = self._any_of(read.lookups) if read.lookups else _always
        if self.is_whole and read.earlier:
            found = _never
        again = self._any_of(read.earlier) if read.earlier and not self.is_whole else _never
        gave: list[Found] = []
        for mark in (False, True):

            def kept(row: Named, mark: bool = mark) -> bool:
                return found(row) and again(row) is mark

            gave += [(row, 1, mark) for row in self._present(read, kept).elements()]
            if read.is_changed:
                gave += [(row, -w, mark) for row, w in self._moved(read, kept).items() if w > 0]
        return gave

    def _answer(self, read: Read) -> list[Found]:
        assert read.query is not None
        if not self.is_whole and read.parts and all(self._is_empty(part) for part in read.parts):
            return []
        names = [f.name for f in read.fields]
        kept = self._any_of(read.lookups, asks=False) if read.lookups else _always
        if read.version in {Version.NOW, Version.BEFORE}:
            rows = self._evaluated(read, read.version)
            return [(row, 1, False) for row in rows.elements() if kept(dict(zip(names, row, strict=True)))]
        now, before = self._evaluated(read, Version.NOW), self._evaluated(read, Version.BEFORE)
        counted = minus(now, before) if read.version is Version.CHANGED else now & before
        return [
            (row, weight, False)
            for row, weight in counted.items()
            if kept(dict(zip(names, row, strict=True)))
        ]

    def _evaluated(self, read: Read, version: Version) -> ZSet:
        """The rows of an answer at one end."""
        assert read.query is not None
        parts = {part.name: self._part(part, version) for part in read.parts}

        def rows_of(leaf: Operator) -> ZSet:
            if isinstance(leaf, Answer):
                ((constant, _),) = leaf.reads
                assert constant.query is not None
                return over_leaves(self.queries[constant.query], rows_of)
            assert isinstance(leaf, Leaf)
            return parts[relation_name(leaf.scan)]

        return over_leaves(self.queries[read.query], rows_of)

    def _is_empty(self, part: Part) -> bool:
        if part.change is None:
            return self._reached(part) is _never
        changes = None if self.lost(part.change.name) else self.tables.get(part.change.name)
        return self._reached(part) is _never and changes is not None and not changes.found

    def _part(self, part: Part, version: Version) -> ZSet:
        """The reached rows and the change, as a plain bag."""
        reached = self._reached(part)
        rows = self._present(part.rows, reached)
        if part.change is None:
            return rows
        if version is Version.NOW:
            beyond = self._moved(part.rows, lambda row: not reached(row))
            return rows + beyond
        gone = -self._moved(part.rows, _always)
        inserted = +self._moved(part.rows, reached)
        assert not minus(inserted, rows & inserted)
        return (rows - inserted) + gone

    def _reached(self, part: Part) -> Condition:
        if not part.is_reached:
            return _always if self.is_whole else _never
        return self._any_of(part.rows.lookups, asks=False) if part.rows.lookups else _always

    def _present(self, read: Read, condition: Condition) -> ZSet:
        """Rows of the source now."""
        holds = _holding(read, self.world.now)
        return _selected(read, self.world.new, lambda row: holds(row) and condition(row))

    def _moved(self, read: Read, condition: Condition) -> ZSet:
        """What the window did to rows of the source, and which ones the clock alone let in or out."""
        assert read.source is not None
        held, holds = _holding(read, self.world.before), _holding(read, self.world.now)
        change = {read.source.relation: self.world.change(read.source.relation)}
        moved = _selected(read, change, lambda row: held(row) and condition(row))
        if not read.follows_clock:
            return folded(moved.items())
        crossed = _selected(read, self.world.new, lambda row: condition(row) * (holds(row) - held(row)))
        return folded([*moved.items(), *crossed.items()])

    def _any_of(self, lookups: tuple[Lookup, ...], asks: bool = True) -> Condition:
        """Whether one of the lookups finds a row."""
        if self.is_whole:
            return _always
        used = [lookup for lookup in lookups if self._has_keys(lookup)]
        if any(self._is_lost(lookup) for lookup in used):
            is_asked = asks and len(used) == 1 and used[0] not in self.marked and not used[0].is_null_safe
            is_asked = is_asked and used[0].comparison is None
            return self._condition(used[0]) if is_asked else _always
        found = [self._condition(lookup) for lookup in used]
        if _always in found:
            return _always
        return (lambda row: any(one(row) for one in found)) if found else _never

    def _has_keys(self, lookup: Lookup) -> bool:
        return self._is_lost(lookup) or any(self.tables[p.read].found for p in lookup.providers)

    def _is_lost(self, lookup: Lookup) -> bool:
        return any(self.lost(provider.read) for provider in lookup.providers)

    def _condition(self, lookup: Lookup) -> Condition:
        """Columns are restricted one by one: a superset of the keys is enough."""
        if lookup.comparison is not None:
            return self._between(lookup, lookup.comparison)
        parts: list[Condition] = []
        for position, text in enumerate(lookup.columns):
            held = [self.tables[p.read].keys((p.fields[position],)) for p in lookup.providers]
            keys = {key for found in held for (key,) in found}
            if len(keys) <= self.many:
                parts.append(_among(text, keys if lookup.is_null_safe else keys - {None}))
        return (lambda row: all(part(row) for part in parts)) if parts else _always

    def _between(self, lookup: Lookup, comparison: str) -> Condition:
        """What is between the bounds, or on the kept side of one where another is null."""
        (text,) = lookup.columns
        place = meaning(text)
        bounds = {key for p in lookup.providers for (key,) in self.tables[p.read].keys(p.fields)}
        known = bounds - {None}
        if not known:
            return _never
        least, greatest = min(known), max(known)
        if None in bounds:
            bound = least if comparison.startswith(">") else greatest
            return lambda row: place(row) is not None and SIGNS[comparison](place(row), bound)
        return lambda row: place(row) is not None and least <= place(row) <= greatest


def _always(row: Named) -> bool:
    return True


def _never(row: Named) -> bool:
    return False


def _among(text: str, keys: set[object]) -> Condition:
    column = meaning(text)
    return lambda row: column(row) in keys


def _holding(read: Read, clock: int) -> Condition:
    """The read's own condition at a time."""
    own = meaning((read.condition or "true").replace(CLOCK, str(clock)))
    return lambda row: own(row) is True


def _selected(read: Read, bags: Bags, counted: Callable[[Named], int]) -> ZSet:
    """What a read selects of its source's rows, as often as they count; it sees the columns that it names."""
    assert read.source is not None
    names = [c.name for c in read.source.columns]
    fields = [meaning(text) for text in read.expressions]
    selected: ZSet = ZSet()
    for row, weight in bags[read.source.relation].items():
        known = {name: v for name, v in zip(names, row, strict=True) if name in read.uses}
        if number := counted(known):
            selected[tuple(field(known) for field in fields)] += weight * number
    return selected
