"""What capture costs an application that changes many rows in one statement, in time and in log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from statistics import median
from typing import Final

from bench.figures import Bar, Figure, at_most, ratio
from bench.stage import Connection, Place, Stage
from bench.timing import milliseconds

WARMING: Final = 3
BARS: Final[Mapping[str, Bar]] = {"insert": at_most(1.25), "update": at_most(1.5), "delete": at_most(1.6)}
CAPTURED, PLAIN = "captured", "plain"

_TABLE: Final = """
create table {name} (
    id bigint primary key,
    customer integer not null,
    amount numeric(12, 2) not null,
    status text not null,
    placed_at timestamptz not null,
    note varchar(80),
    ratio double precision,
    is_paid boolean,
    due date,
    tag uuid
)"""
_INSERT: Final = """
insert into {name}
select n, n * 7919 % 10000, (n * 31 % 100000) / 100.0, 'placed',
    timestamptz '2025-01-01' + n * interval '1 second', 'note number ' || n, n / 3.0, n % 2 = 0,
    date '2025-01-01' + (n % 365)::integer, md5(n::text)::uuid
from generate_series({first}::bigint, {last}) n"""
_QUERY: Final = "select status, count(*) as orders, sum(amount) as total from {name} group by status"


def capture_cost(stage: Stage) -> list[Figure]:
    """Insert, update and delete the same rows, each committed by itself, on both tables in turns."""
    with stage.database("capture_cost") as place:
        make_wide(place, stage.sizes.few_orders)
        taken: dict[str, dict[str, list[float]]] = {kind: {CAPTURED: [], PLAIN: []} for kind in BARS}
        written: dict[str, dict[str, list[float]]] = {kind: {CAPTURED: [], PLAIN: []} for kind in BARS}
        for number in range(WARMING + stage.sizes.rounds):
            for name in (CAPTURED, PLAIN) if number % 2 else (PLAIN, CAPTURED):
                for kind, statement in statements(name, stage.sizes.few_orders, stage.sizes.bulk):
                    before = _log_position(place.connection)
                    took = milliseconds(partial(place.connection.execute, statement))
                    size = _log_position(place.connection) - before
                    if number >= WARMING:
                        taken[kind][name].append(took)
                        written[kind][name].append(size / stage.sizes.bulk)
    return [
        figure
        for kind, bar in BARS.items()
        for figure in (
            ratio(
                f"{kind} of {stage.sizes.bulk:,} rows of ten columns with capture ÷ without",
                CAPTURED,
                PLAIN,
                taken[kind],
                bar,
                unit="ms",
            ),
            _log_growth(kind, written[kind]),
        )
    ]


def make_wide(place: Place, count: int) -> None:
    """Two tables of ten columns; a stream table reads two columns of one of them."""
    for name in (CAPTURED, PLAIN):
        place.connection.execute(_TABLE.format(name=name))
        place.connection.execute(_INSERT.format(name=name, first=1, last=count))
    place.trickle.create_stream_table("by_status", _QUERY.format(name=CAPTURED), None, "DIFFERENTIAL")
    place.settle()


def statements(name: str, count: int, changed: int) -> Iterator[tuple[str, str]]:
    """Insert rows beyond the first `count`, update them, delete them."""
    first, last = count + 1, count + changed
    yield "insert", _INSERT.format(name=name, first=first, last=last)
    yield "update", f"update {name} set amount = amount + 1 where id between {first} and {last}"
    yield "delete", f"delete from {name} where id between {first} and {last}"


def _log_position(connection: Connection) -> float:
    row = connection.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
    assert row is not None
    return float(row[0])


def _log_growth(kind: str, written: Mapping[str, list[float]]) -> Figure:
    """The bytes of log that capture adds to each changed row."""
    captured, plain = median(written[CAPTURED]), median(written[PLAIN])
    note = f"{captured:,.0f} with capture, {plain:,.0f} without"
    what = f"log for each row, {kind}: capture adds"
    return Figure(what, captured - plain, "bytes", note=note, samples=written)
