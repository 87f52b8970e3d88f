"""A materialized view of a table without a key, beside an ordinary table, and what happens to both."""

from __future__ import annotations

from tests.fixtures.databases import TRICKLE
from tests.fixtures.sources import Source, SourceTable

ITEMS = "items(id int, kind text, amount numeric, ratio float8, doc jsonb, place text, at timestamptz)"
KINDS = "kinds(kind text primary key, label text)"

ROWS = [
    (1, "a", "1.0", "0", '{"a": 1}', "(0,0)", "2024-01-01"),
    (1, "a", "1.0", "0", '{"a": 1}', "(0,0)", "2024-01-01"),
    (2, "b", "2.50", "NaN", None, None, "infinity"),
    (3, None, None, None, '{"a":1}', "(-0,1)", None),
    (4, "c", "7", "-0", "[]", "(1,1)", "2024-02-01"),
]

CHANGES = (
    ("update items set amount = amount + 1 where id <= 2", "delete from items where id = 4"),
    (
        # equal to PostgreSQL, and yet another value to whoever reads it
        "update items set amount = amount::numeric(12,4), ratio = '-0' where id = 1",
        "update kinds set label = 'changed' where kind = 'b'",
        "insert into items select 2, 'b', 2.50, 'NaN', null, null, 'infinity' from generate_series(1, 3)",
    ),
    ("delete from kinds where kind = 'a'", "update items set kind = 'c', place = '(2,2)' where id = 3"),
    ("delete from items",),
    ("insert into items values (9, null, 0.10, 1e300, 'null', '(0,0)', '2025-01-01')",),
)


def viewed(source: Source) -> SourceTable:
    """The tables, the materialized view `m`, and a view over that."""
    items = source(ITEMS, rows=ROWS)
    source(KINDS, rows=[("a", "first"), ("b", "second"), ("d", "fourth")])
    items.change(
        "create materialized view m as select * from items",
        f"grant select on m to {TRICKLE}",
        "create view per_kind as select kind, count(*) as n from m group by kind",
    )
    return items
