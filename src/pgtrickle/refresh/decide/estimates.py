"""Estimates what a refresh would cost, before one was measured, by the planner and statistics of PostgreSQL.

The full refresh is one query, which PostgreSQL explains. The rows that a differential refresh reads follow
from the window, lookup by lookup: a key finds as many rows as the table has for one value of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgtrickle.apply.compose import trusted_sql
from pgtrickle.apply.storage import state_table
from pgtrickle.changes.source_window import SourceWindow
from pgtrickle.model.names import quoted
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import RelationId, StreamTable
from pgtrickle.plan.program import FirstRows, Program
from pgtrickle.plan.reads import Lookup, Read, ReadKind
from pgtrickle.postgres.connection import Connection, DatabaseError, set_locally, sql
from pgtrickle.refresh.decide.cost_model import CostLimits, Estimate
from pgtrickle.refresh.session import PLANNED_AS_A_WHOLE

FULL_MS: Final = 12.0
"""What a full refresh costs apart from its query."""
COST_MS: Final = 0.006
"""Milliseconds of one unit of the planner's cost."""
RESULT_MS: Final = 0.012
"""Milliseconds of comparing and writing one row of the result."""
DELTA_MS: Final = 20.0
"""What a differential refresh costs apart from its rows."""
READ_ROUND_MS: Final = 2.0
"""One read, however few rows it finds."""
CHANGE_MS: Final = 0.02
"""One change row: read, computed and applied."""
ROW_MS: Final = 0.012
"""One row that is looked up."""
SCANNED_MS: Final = 0.0004
"""One row that PostgreSQL scans without sending it."""
_FEW_DISTINCT: Final = 200.0
"""The distinct values of a column without statistics, as PostgreSQL assumes."""


@dataclass(frozen=True, slots=True)
class SourceSize:
    """How many rows a source has, and how many distinct values its columns have, as far as is known."""

    rows: float
    distinct: Mapping[str, float]

    def rows_per_key(self, columns: Iterable[str]) -> float:
        """How many rows have one combination of values; `columns` are SQL over the alias `t`."""
        found = 1.0
        for column in columns:
            found *= self.distinct.get(column, _FEW_DISTINCT)
        return max(self.rows / max(min(found, self.rows), 1.0), 0.0)


Sizes = Mapping[RelationId, SourceSize]


def estimate(
    connection: Connection,
    table: StreamTable,
    programs: Sequence[Program],
    recomputations: Sequence[Program],
    sources: Iterable[Source],
    windows: Iterable[SourceWindow],
    limits: CostLimits,
) -> Estimate | None:
    """What following these windows would cost, and what computing all rows; None if PostgreSQL cannot say.

    The programs are those of the table and of the inner results that are kept beside it.
    """
    try:
        with connection.transaction():
            sizes = source_sizes(connection, sources)
            rows = _stored_rows(connection, table)
            cost = sum(_explained_cost(connection, program) for program in recomputations)
    except DatabaseError:
        # the planner evaluates constants, and that can fail although no row ever needs them
        return None
    full = FULL_MS + COST_MS * cost + RESULT_MS * rows
    changed = {w.relation: w.rows for w in windows}
    costs = [differential_ms(program, sizes, changed) for program in programs]
    total, fixed = sum(total for total, _ in costs), sum(fixed for _, fixed in costs)
    is_worth_it = sum(size.rows for size in sizes.values()) >= limits.worth_rows
    return Estimate(full, total, fixed, is_worth_it)


def differential_ms(program: Program, sizes: Sizes, changed: Mapping[RelationId, int]) -> tuple[float, float]:
    """The milliseconds of following a window, and those that do not depend on its size."""
    found: dict[str, float] = {}
    scanned = 0.0
    fixed = DELTA_MS + READ_ROUND_MS * len(program.reads)
    for read in program.reads:
        if read.kind is ReadKind.CHANGES and read.source is not None:
            found[read.name] = float(changed.get(read.source.relation, 0))
        elif read.kind is ReadKind.ROWS:
            found[read.name] = _reached(read, found, sizes)
        else:
            reached = sum(_reached(part.rows, found, sizes) for part in read.parts)
            scanned += 2 * reached
            found[read.name] = min(reached, _keys(read.lookups, found)) if read.lookups else 0.0
        if not read.lookups and read.kind is not ReadKind.CHANGES:
            fixed += ROW_MS * found[read.name]
    window = sum(changed.values())
    looked_up = sum(rows for name, rows in found.items() if not _is_window(program, name))
    total = fixed + CHANGE_MS * window + ROW_MS * looked_up + SCANNED_MS * scanned
    return total, min(fixed, total)


def _is_window(program: Program, name: str) -> bool:
    return any(read.name == name and read.kind is ReadKind.CHANGES for read in program.reads)


def _reached(read: Read, found: Mapping[str, float], sizes: Sizes) -> float:
    """The rows of a source that a read finds."""
    size = sizes.get(read.source.relation) if read.source is not None else None
    if size is None:
        return 0.0
    if not read.lookups:
        return size.rows
    reached = 0.0
    for lookup in read.lookups:
        keys = _keys((lookup,), found)
        reached += keys * size.rows_per_key(lookup.columns) if lookup.columns else (size.rows if keys else 0)
    return min(reached, size.rows)


def _keys(lookups: Iterable[Lookup], found: Mapping[str, float]) -> float:
    return sum(found.get(provider.read, 0.0) for lookup in lookups for provider in lookup.providers)


def source_sizes(connection: Connection, sources: Iterable[Source]) -> Sizes:
    """The sizes of sources by the statistics of PostgreSQL; without statistics, by the size of the files."""
    by_name = {(source.table.schema, source.table.name): source for source in sources}
    rows = connection.execute(
        "select n.nspname, c.relname, coalesce(nullif(sum(greatest(l.reltuples, 0)), 0),"
        " sum(pg_relation_size(l.oid)) / 100)::float8"
        " from unnest(%s::text[], %s::text[]) as s(schema, name)"
        " join pg_namespace n on n.nspname = s.schema"
        " join pg_class c on c.relnamespace = n.oid and c.relname = s.name"
        " left join lateral pg_partition_tree(c.oid) p on p.isleaf"
        " join pg_class l on l.oid = coalesce(p.relid, c.oid) group by 1, 2",
        ([schema for schema, _ in by_name], [name for _, name in by_name]),
    ).fetchall()
    counts = {(schema, name): float(count or 0) for schema, name, count in rows}
    distinct: dict[tuple[str, str], dict[str, float]] = {}
    for schema, name, column, value in connection.execute(
        "select s.schemaname, s.tablename, s.attname, max(s.n_distinct)::float8 from pg_stats s"
        " join unnest(%s::text[], %s::text[]) as w(schema, name)"
        " on s.schemaname = w.schema and s.tablename = w.name where s.n_distinct <> 0 group by 1, 2, 3",
        ([schema for schema, _ in by_name], [name for _, name in by_name]),
    ).fetchall():
        # a negative number is a share of the rows
        known = value if value > 0 else -value * counts.get((schema, name), 0.0)
        distinct.setdefault((schema, name), {})[f"t.{quoted(column)}"] = known
    return {
        source.relation: SourceSize(counts.get(name, 0.0), _with_keys(source, name, counts, distinct))
        for name, source in by_name.items()
    }


def _with_keys(
    source: Source,
    name: tuple[str, str],
    counts: Mapping[tuple[str, str], float],
    distinct: Mapping[tuple[str, str], Mapping[str, float]],
) -> Mapping[str, float]:
    """The distinct values of columns; a key of one column has as many as there are rows."""
    unique = {f"t.{quoted(key[0])}": counts.get(name, 0.0) for key in source.keys if len(key) == 1}
    return {**distinct.get(name, {}), **unique}


def _stored_rows(connection: Connection, table: StreamTable) -> float:
    """How many rows the table and its state have, at a hundred bytes a row: a full refresh compares them."""
    row = connection.execute(
        "select sum(pg_relation_size(to_regclass(name)))::float8 / 100 from unnest(%s::text[]) n(name)",
        ([table.name.sql, state_table(table.id).sql],),
    ).fetchone()
    assert row is not None
    return float(row[0] or 0.0)


def _explained_cost(connection: Connection, recomputation: Program) -> float:
    """The planner's cost of computing all rows."""
    target = recomputation.target
    query = target.query if isinstance(target, FirstRows) else recomputation.reads[0].query
    assert query is not None
    set_locally(connection, PLANNED_AS_A_WHOLE)
    row = connection.execute(
        sql.SQL("explain (format json) select * from ({}) as t").format(trusted_sql(query)), {}
    ).fetchone()
    assert row is not None
    return float(row[0][0]["Plan"]["Total Cost"])
