"""Small stream tables over one another: a chain, levels, a diamond."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.crowd import create
from bench.stage import Connection, Place
from pgtrickle.model.stream_table import RefreshOutcome, StreamTableId
from pgtrickle.refresh.story import refresh_all

ROWS: Final = 10_000
KINDS: Final = 1_000

Definitions = Sequence[tuple[str, str]]
"""Names and queries, whoever is read first."""

_SOURCE: Final = f"""
create table {{name}} (id integer primary key, kind integer not null, cents integer not null);
insert into {{name}} select n, n % {KINDS}, n from generate_series(1, {ROWS}) n;
create index on {{name}} (kind)"""
_BONUSES: Final = f"""
create table bonuses (kind integer primary key, bonus integer not null);
insert into bonuses select n, n from generate_series(0, {KINDS - 1}) n"""
_FIRST: Final = (
    "select kind, count(*) as n, sum(cents + {extra})::bigint as total from {source} group by kind"
)
_ABOVE: Final = (
    "select kind, n, total from {below} where n > 0",
    "select t.kind, t.n, t.total + b.bonus as total from {below} t join bonuses b on b.kind = t.kind",
    "select kind % {some} as kind, sum(n)::bigint as n, sum(total)::bigint as total from {below} group by 1",
)
_ARMS: Final = ("count(*)", "sum(cents)::bigint", "max(cents)", "sum(cents * 2)::bigint")


def make_sources(connection: Connection, names: Sequence[str]) -> None:
    """Tables of ten thousand rows in a thousand kinds, and a bonus for each kind."""
    connection.execute(_BONUSES)
    for name in names:
        connection.execute(_SOURCE.format(name=name))


def chain(prefix: str, source: str, length: int, extra: int = 0) -> Definitions:
    """Each reads the one before: groups, then a filter, a join, groups again, and so on."""
    found = [(f"{prefix}_1", _FIRST.format(source=source, extra=extra))]
    for level in range(2, length + 1):
        query = _ABOVE[(level - 2) % len(_ABOVE)]
        found.append((f"{prefix}_{level}", query.format(below=f"{prefix}_{level - 1}", some=KINDS - level)))
    return found


def levels(prefix: str, sources: Sequence[str], deep: int, wide: int) -> Definitions:
    """So many chains side by side over a few sources."""
    chains = [chain(f"{prefix}_{n}", sources[n % len(sources)], deep, extra=n) for n in range(wide)]
    return [chains[n][level] for level in range(deep) for n in range(wide)]


def diamond(prefix: str, source: str) -> Definitions:
    """Four arms over one source, and a top that joins them."""
    arms = [
        (f"{prefix}_arm_{n}", f"select kind, {value} as value from {source} group by kind")
        for n, value in enumerate(_ARMS)
    ]
    values = ", ".join(f"a{n}.value as value_{n}" for n in range(len(arms)))
    others = " ".join(f"join {arms[n][0]} a{n} on a{n}.kind = a0.kind" for n in range(1, len(arms)))
    return [*arms, (f"{prefix}_top", f"select a0.kind, {values} from {arms[0][0]} a0 {others}")]


@dataclass(frozen=True, slots=True)
class Together:
    """Stream tables that are refreshed as one group, and the sources whose rows change before it."""

    place: Place
    ids: tuple[StreamTableId, ...]
    sources: tuple[str, ...]
    _random: random.Random = field(default_factory=lambda: random.Random(7))

    def change(self) -> None:
        """Change one row of every source, all in one transaction."""
        with self.place.connection.transaction():
            for source in self.sources:
                self.place.connection.execute(
                    f"update {source} set cents = cents + 1 where id = {self._random.randint(1, ROWS)}"
                )

    def refresh(self) -> None:
        """Bring all of them to one snapshot, as the scheduler does with a group."""
        self.refresh_only(self.ids)

    def refresh_each(self) -> None:
        """The same one by one, each committed by itself."""
        for table in self.ids:
            self.refresh_only([table])

    def refresh_only(self, ids: Sequence[StreamTableId]) -> None:
        """Some of them; whoever fails is told."""
        for result in refresh_all(self.place.trickle.engine, ids, initiated_by="bench", waits=True):
            if not isinstance(result, RefreshOutcome):
                raise result.error


def made(place: Place, definitions: Definitions, *sources: str) -> Together:
    """Create the stream tables and load them; all must be followed differentially."""
    with place.connection.transaction():
        for name, query in definitions:
            create(place.connection, name, query, None, "DIFFERENTIAL")
    rows = place.connection.execute(
        "select pgt_id from pgtrickle.pgt_stream_tables where pgt_name = any (%s) order by pgt_id",
        ([name for name, _ in definitions],),
    )
    together = Together(place, tuple(StreamTableId(row[0]) for row in rows), sources)
    together.refresh()
    return together
