"""Splits a table into even parts by the physical place of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pgtrickle.model.source import Source
from pgtrickle.postgres.column_arrays import ENCODINGS, PageRange
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

COLUMN_PAGES: Final = 256
"""How many pages a task reads at a time if it reads column by column: two megabytes."""


LEAST_STEP: Final = 8
"""The least pages of each table: with many partitions, planning would take longer than reading."""


@dataclass(frozen=True, slots=True)
class PageRanges:
    """Ranges that together hold every row exactly once; none if the table is read as a whole.

    A task may read `step` pages at a time column by column; None if it must read rows one by one, because
    values of any size, or in another encoding, could be on these pages, or there are too many tables.
    """

    ranges: tuple[PageRange, ...]
    step: int | None


def page_ranges(connection: Connection, source: Source, parts: int, *, least_pages: int = 1) -> PageRanges:
    """Split a table into at most `parts`, each of which has `least_pages`.

    The same range applies to every table below a partitioned one.
    """
    row = connection.execute(
        load("pgtrickle.pipeline", "pages.sql"),
        {"relation": source.relation, "copy": source.copy.sql if source.copy else None},
    ).fetchone()
    longest, total, has_large_values = row if row else (0, 0, False)
    count = max(1, min(parts, longest // least_pages))
    if count == 1:
        return PageRanges((), None)
    cuts = [longest * part // count for part in range(count + 1)]
    ranges = [PageRange(low, high, is_last=high == longest) for low, high in pairwise(cuts)]
    encoding = connection.info.parameter_status("server_encoding")
    step = COLUMN_PAGES * longest // total
    by_columns = not has_large_values and encoding in ENCODINGS and step >= LEAST_STEP
    return PageRanges(tuple(ranges), step if by_columns else None)


def ctid_ranges(
    connection: Connection, source: Source, parts: int, *, least_pages: int = 1
) -> tuple[str, ...]:
    """The same as conditions over the alias `t`."""
    found = page_ranges(connection, source, parts, least_pages=least_pages).ranges
    return tuple(one.condition for one in found) or ("true",)
