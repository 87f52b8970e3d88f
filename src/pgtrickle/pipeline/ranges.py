"""Splits a table into even parts by the physical place of its rows."""

from __future__ import annotations

from itertools import pairwise

from pgtrickle.model.source import Source
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


def ctid_ranges(
    connection: Connection, source: Source, parts: int, *, least_pages: int = 1
) -> tuple[str, ...]:
    """Conditions over the alias `t` that together hold for every row exactly once.

    The same range applies to every table below a partitioned one. The last part has no end,
    so that rows on pages added meanwhile belong to it. A part has `least_pages`, unless it is the only one.
    """
    row = connection.execute(
        load("pgtrickle.pipeline", "pages.sql"),
        {"relation": source.relation, "copy": source.copy.sql if source.copy else None},
    ).fetchone()
    pages = int(row[0]) if row else 0
    count = max(1, min(parts, pages // least_pages))
    if count == 1:
        return ("true",)
    cuts = [pages * part // count for part in range(count)]
    bounded = [f"t.ctid >= '({low},0)'::tid and t.ctid < '({high},0)'::tid" for low, high in pairwise(cuts)]
    return (*bounded, f"t.ctid >= '({cuts[-1]},0)'::tid")
