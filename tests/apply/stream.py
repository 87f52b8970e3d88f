"""A stream table as the apply tests see it: written through `apply`, looked at as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa

from pgtrickle.apply import (
    Applied,
    ArrayRows,
    Destination,
    Rows,
    StagedRows,
    apply_changes,
    carried_columns,
    create_storage,
    groups_to_rescan,
    replace_all,
    staging_table,
)
from pgtrickle.model.carrier import Field
from pgtrickle.model.names import RelationName, quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.program import FirstRows, MergedGroups, Output, Target

STATE = 7
NO_HASH = frozenset({"json", "bit(4)"})
RUN = 42
Row = tuple[Any, ...]


def field(name: str, pg_type: str) -> Field:
    """A field of that type, travelling as the compiler would let it."""
    base = pg_type.split("(")[0]
    return Field(name, carrier_of(PgType(pg_type, base, kind="b", category="U")))


def outputs(columns: Mapping[str, str]) -> tuple[Output, ...]:
    """Output columns that are fields of the same name."""
    return tuple(Output(name, pg_type, quoted(name)) for name, pg_type in columns.items())


@dataclass(frozen=True)
class Stream:
    """One stream table and its target; `connection` is in the claiming transaction."""

    connection: psycopg.Connection
    target: Target
    name: RelationName
    staged: bool = False

    @property
    def matches(self) -> tuple[str, ...]:
        return tuple(
            f"({quoted(o.name)})::text" if o.pg_type in NO_HASH else quoted(o.name)
            for o in self.target.outputs
        )

    @property
    def destination(self) -> Destination:
        return Destination(self.name, self.matches, STATE, self.target)

    def run(self, text: str, *parameters: object) -> list[Row]:
        cursor = self.connection.execute(text.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def given(self, rows: Iterable[Sequence[Any]]) -> Rows:
        """Rows in their carried form, as arrays or from the staging table beside those of a failed task."""
        columns = carried_columns(self.target)
        values = list(zip(*rows, strict=True)) or [()] * len(columns)
        table = pa.table({c.name: pa.array(v, c.arrow_type) for c, v in zip(columns, values, strict=True)})
        return self._copied(table) if self.staged else ArrayRows(table)

    def _copied(self, table: pa.Table) -> StagedRows:
        name = staging_table(STATE)
        self.run(f"truncate {name.sql}")
        with self.connection.cursor().copy(f"copy {name.sql} from stdin".encode()) as copy:
            for part, row in enumerate(table.to_pylist()):
                for attempt in (1, 2):
                    copy.write_row((RUN, part % 3, attempt, *row.values()))
                copy.write_row((RUN - 1, part % 3, 2, *row.values()))
        return StagedRows(name, RUN, ((0, 2), (1, 2), (2, 2)))

    def change(self, rows: Iterable[Sequence[Any]], rescanned: pa.Table | None = None) -> Applied:
        given, extrema = self.given(rows), None if rescanned is None else ArrayRows(rescanned)
        return apply_changes(self.connection, self.destination, given, extrema)

    def to_rescan(self, rows: Iterable[Sequence[Any]]) -> pa.Table | None:
        assert isinstance(self.target, MergedGroups)
        portions = [*groups_to_rescan(self.connection, STATE, self.target, self.given(rows), 2)]
        return pa.concat_tables(portions) if portions else None

    def replace(self, rows: Iterable[Sequence[Any]]) -> Applied:
        assert not isinstance(self.target, FirstRows)
        return replace_all(self.connection, self.destination, self.given(rows))

    def rows(self) -> Counter[str]:
        """The rows as text, each with its number of copies."""
        return Counter(row for (row,) in self.run(f"select t::text from {self.name.sql} t"))

    def versions(self) -> dict[str, set[str]]:
        """Each row with the transactions and places of its copies: unchanged if it was not touched."""
        found: dict[str, set[str]] = {}
        for row, place in self.run(f"select t::text, xmin || ' ' || ctid from {self.name.sql} t"):
            found.setdefault(row, set()).add(place)
        return found


def create_stream(
    connection: psycopg.Connection, target: Target, name: str = "stream", *, staged: bool = False
) -> Stream:
    """An empty stream table with its index, state and staging, all in the open transaction."""
    stream = Stream(connection, target, RelationName("streams", name), staged)
    columns = ", ".join(f"{quoted(o.name)} {o.pg_type}" for o in target.outputs)
    stream.run("create schema if not exists streams")
    stream.run(f"create table {stream.name.sql} ({columns})")
    stream.run(
        f"create index on {stream.name.sql} (hash_record_extended(row({', '.join(stream.matches)}), 0))"
    )
    create_storage(connection, STATE, target)
    return stream
