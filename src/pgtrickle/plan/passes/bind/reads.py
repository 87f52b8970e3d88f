"""The reads of a program: each source's change once, its rows by one lookup after the other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from pgtrickle.model.carrier import Field
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.expressions.clock import has_clock, with_clock_marker
from pgtrickle.plan.expressions.dialect import parse_or_none, to_sql
from pgtrickle.plan.operators import InputLeaf, Leaf, Operator, Scan
from pgtrickle.plan.reads import Input, KeyColumns, Lookup, Read, ReadKind
from pgtrickle.plan.rules.needs import Need, Needs
from pgtrickle.plan.rules.scan import over_source


@dataclass(slots=True)
class Reads:
    """Collects reads in the order in which they can be read: each uses the keys of earlier ones."""

    changed: frozenset[RelationId]
    all: list[Read] = field(default_factory=list)
    _named: dict[Read, Read] = field(default_factory=dict)
    _rows: dict[Scan, list[Read]] = field(default_factory=dict)

    def leaf(self, scan: Scan, needs: Needs) -> Leaf:
        """What is read of a scan so that these needs are met."""
        change = self.add(_change(scan)) if scan.source.relation in self.changed else None
        rows: dict[Read, None] = {}
        for need in needs:
            rows.update(dict.fromkeys(self._reads_meeting(scan, need)))
        return Leaf(scan, change, tuple(rows))

    def with_all_reads(self, leaf: Leaf) -> Leaf:
        """The leaf with every read of its scan, whichever part of the plan asked for it."""
        return replace(leaf, rows=tuple(self._rows.get(leaf.scan, ())))

    def add(self, read: Read) -> Read:
        """The read under a name of its own; the one that is there already if it is the same."""
        nameless = replace(read, name="")
        if nameless not in self._named:
            self._named[nameless] = replace(read, name=self._fresh(read.name))
            self.all.append(self._named[nameless])
        return self._named[nameless]

    def _reads_meeting(self, scan: Scan, need: Need) -> list[Read]:
        """The reads that give the needed rows; one more for keys that none has looked up yet."""
        known = self._rows.setdefault(scan, [])
        if need.providers is None:
            return self._everything(scan, known)
        wanted = lookup_of(scan, need)
        found, missing = [], list(wanted.providers)
        for read in known:
            if not read.lookups:
                return [read]
            (lookup,) = read.lookups
            if _manner(lookup) != _manner(wanted):
                continue
            covered = [provider for provider in missing if provider in lookup.providers]
            if covered:
                found.append(read)
                missing = [provider for provider in missing if provider not in covered]
        if missing:
            earlier = tuple(lookup for read in known for lookup in read.lookups)
            fresh = self._rows_read(scan, (replace(wanted, providers=tuple(missing)),), earlier)
            known.append(fresh)
            found.append(fresh)
        return found

    def _everything(self, scan: Scan, known: list[Read]) -> list[Read]:
        whole = self._rows_read(scan, (), ())
        known[:] = [whole]
        return [whole]

    def _rows_read(self, scan: Scan, lookups: tuple[Lookup, ...], earlier: tuple[Lookup, ...]) -> Read:
        is_changed = scan.source.relation in self.changed
        read = replace(_change(scan), name=f"rows_of_{scan.alias}", kind=ReadKind.ROWS)
        return self.add(replace(read, lookups=lookups, earlier=earlier, is_changed=is_changed))

    def _fresh(self, wish: str) -> str:
        """A name for a read that no other read has, fit to be a view's name."""
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in wish.lower())
        taken = {read.name for read in self.all}
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        return name


def _change(scan: Scan) -> Read:
    return Read(
        name=f"change_of_{scan.alias}",
        kind=ReadKind.CHANGES,
        source=scan.source,
        query=None,
        fields=tuple(Field(c.name, c.carrier) for c in scan.columns),
        expressions=tuple(over_source(scan, output.expression) for output in scan.outputs),
        uses=_uses(scan),
        condition=over_source(scan, with_clock_marker(scan.condition)) if scan.condition else None,
        follows_clock=has_clock(scan.condition),
    )


def _uses(scan: Scan) -> tuple[str, ...]:
    expressions = [output.expression for output in scan.outputs]
    if scan.condition:
        expressions.append(scan.condition)
    names = {name for expression in expressions for name in expression.columns}
    return tuple(sorted(scan.source_column(name) for name in names))


def lookup_of(scan: Scan, need: Need) -> Lookup:
    """A need as a lookup in the scan's source."""
    columns = tuple(over_source(scan, scan.expression(name)) for name in need.columns)
    return lookup_by(columns, tuple(Field(name, scan.column(name).carrier) for name in need.columns), need)


def lookup_by(columns: tuple[str, ...], keys: tuple[Field, ...], need: Need) -> Lookup:
    """A need as a lookup by columns, given as SQL, whose values travel like the keys."""
    assert need.providers is not None
    if need.comparison is None or need.bound is None:
        return Lookup(columns, keys, need.providers, need.is_null_safe)
    return Lookup(columns, (need.bound,), need.providers, is_null_safe=False, comparison=need.comparison)


def _manner(lookup: Lookup) -> tuple[object, ...]:
    """What two lookups must share so that the keys of one can be added to the other."""
    is_range = lookup.comparison is not None
    # the values between all bounds are more than those between the bounds of each
    bounds = lookup.providers if is_range else ()
    return lookup.columns, lookup.is_null_safe, lookup.comparison, bounds


def inputs_of(bound: Operator) -> tuple[Input, ...]:
    """What Spark reads of a bound tree."""
    found = (part.input for part in bound.walk() if isinstance(part, InputLeaf))
    return tuple(dict.fromkeys(found))


def reachable(reads: list[Read], used: set[str]) -> tuple[Read, ...]:
    """Only the reads that are used, or whose keys are."""
    wanted = set(used)
    for read in reversed(reads):
        if read.name in wanted:
            wanted |= {provider.read for provider in _providers(read)}
    return tuple(read for read in reads if read.name in wanted)


def _providers(read: Read) -> list[KeyColumns]:
    inner = [part.rows for part in read.parts]
    lookups = [lookup for one in (read, *inner) for lookup in (*one.lookups, *one.earlier)]
    return [provider for lookup in lookups for provider in lookup.providers]


def is_indexed(scan: Scan, columns: tuple[str, ...]) -> bool:
    """Whether an index of the source begins with one of these columns."""
    texts = {same_text(_indexed_text(scan, name)) for name in columns}
    return any(index and same_text(index[0]) in texts for index in scan.source.indexes)


def same_text(expression: str) -> str:
    """An expression in a form in which equal ones are equal, however they are written."""
    tree = parse_or_none(expression)
    text = to_sql(tree) if tree is not None else expression
    return re.sub(r"[\s\"()]|\bt\.", "", text).lower()


def _indexed_text(scan: Scan, name: str) -> str:
    expression = scan.expression(name)
    bare = expression.column
    return scan.source_column(bare) if bare is not None else expression.over(scan.source_column)
