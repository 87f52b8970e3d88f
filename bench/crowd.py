"""Many small stream tables over many sources, made quickly and at rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import psycopg

from bench.stage import Connection, Place
from pgtrickle.model.stream_table import StreamTableId

PER_SOURCE: Final = 10
"""So many stream tables follow one source, the last two of them through others."""
SOURCES_AT_ONCE: Final = 5
"""Created in one transaction: each stream table locks some ten relations, a server has room for thousands."""
CREATORS: Final = 2

_SOURCE: Final = "create table source_{n} (id integer primary key, kind integer, amount numeric(12, 2))"
# no aggregates: with a source that is still empty, a stream table without state is loaded as it is created
_DIRECT: Final = "select id, kind, amount + {k} as amount from source_{n} where kind % 8 <= {k}"
_ABOVE: Final = "select id, amount * 2 as amount from kept_{n}_{below} where id > 0"
_SCHEDULES: Final = ("calculated",) * 5 + ("1h", "12h", None, "calculated", "calculated")
_LOADED: Final = """
update pgtrickle.pgt_stream_tables s set
    status = 'ACTIVE', is_populated = true, effective_refresh_mode = 'DIFFERENTIAL',
    follows_clock = false, frontier = pg_current_snapshot(),
    upstream_frontier = case when exists (
        select from pgtrickle.pgt_dependencies d where d.pgt_id = s.pgt_id and d.source_type = 'stream_table')
        then pg_current_snapshot() end,
    data_timestamp = now(), last_refresh_at = clock_timestamp()
where not s.is_populated"""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Stream tables `kept_<source>_<number>` over sources `source_<source>`."""

    place: Place
    sources: range

    def ids_over(self, source: int) -> list[StreamTableId]:
        """The stream tables that follow a source, whoever is read first."""
        rows = self.place.connection.execute(
            "select pgt_id from pgtrickle.pgt_stream_tables where pgt_name = any (%s) order by pgt_id",
            ([f"kept_{source}_{number}" for number in range(PER_SOURCE)],),
        )
        return [StreamTableId(row[0]) for row in rows]

    def following(self, source: int) -> set[str]:
        """The stream tables that are due as soon as the source has changed."""
        return {f"kept_{source}_{k}" for k, when in enumerate(_SCHEDULES) if when == "calculated"}

    def change(self, sources: Sequence[int], row: int, connection: Connection | None = None) -> None:
        """Add a row to each of these sources, or change it, each in a transaction of its own."""
        for source in sources:
            (connection or self.place.connection).execute(
                f"insert into source_{source} values ({row}, {row} % 8, 1)"
                f" on conflict (id) do update set amount = source_{source}.amount + 1"
            )


def crowd(place: Place, tables: int, made: int = 0) -> Crowd:
    """So many stream tables, `made` of which are there already.

    All go through `create_stream_table`, many in one transaction. Their sources are empty, so that
    they equal their query as they are: the catalog is told so, instead of loading nothing into each.
    """
    wanted = range(made // PER_SOURCE, tables // PER_SOURCE)
    batches = [wanted[start : start + SOURCES_AT_ONCE] for start in range(0, len(wanted), SOURCES_AT_ONCE)]
    with ThreadPoolExecutor(CREATORS) as creators:
        list(creators.map(lambda batch: _create(place.dsn, batch), batches))
    place.connection.execute(_LOADED)
    names = "pgt_stream_tables, pgtrickle.pgt_dependencies, pgtrickle.pgt_sources, pgtrickle.pgt_generation"
    place.connection.execute(f"vacuum analyze pgtrickle.{names}")
    place.connection.execute("checkpoint")
    return Crowd(place, range(tables // PER_SOURCE))


def _create(dsn: str, sources: range) -> None:
    with psycopg.connect(dsn) as connection:
        for source in sources:
            connection.execute(_SOURCE.format(n=source))
            for name, query, schedule in _definitions(source):
                create(connection, name, query, schedule)


def create(connection: Connection, name: str, query: str, schedule: str | None, mode: str = "AUTO") -> None:
    """Create a stream table in the transaction of the caller."""
    connection.execute("select pgtrickle.create_stream_table(%s, %s, %s, %s)", (name, query, schedule, mode))


def _definitions(source: int) -> Iterator[tuple[str, str, str | None]]:
    for number, schedule in enumerate(_SCHEDULES):
        query = _DIRECT.format(n=source, k=number)
        if number == PER_SOURCE - 2:
            query = _ABOVE.format(n=source, below=0)
        if number == PER_SOURCE - 1:
            query = _ABOVE.format(n=source, below=number - 1)
        yield f"kept_{source}_{number}", query, schedule
