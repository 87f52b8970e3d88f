"""Drawing rows to change inside PostgreSQL, the same ones in every run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Final

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
NEW_KEYS: Final = 1_000_000
"""Where new keys begin: above all keys of the data, which go up to 6,000,000 times its scale."""


class Draw:
    """One cycle's drawings. Two drawings from the same rows choose independently of each other."""

    def __init__(self, cycle: int, rows: int, new_keys: int = NEW_KEYS) -> None:
        self.cycle = cycle
        self._rows = rows
        self._salts = count(1_000 * (cycle + 1))
        # powers of two: a key that was moved and copied again and again meets no other
        self.copied_by = new_keys << 2 * cycle
        self.moved_by = new_keys << 2 * cycle + 1

    def some(self, table: str, share: float = 1.0, where: str = "true") -> str:
        """A condition that holds for that share of the cycle's number of rows, drawn where `where` holds."""
        keys = ", ".join(KEYS[table])
        limit = max(1, round(self._rows * share))
        return (
            f"({keys}) in (select {keys} from {table} where {where}"
            f" order by {self._place(table, next(self._salts))} limit {limit})"
        )

    def update(self, table: str, values: str, share: float = 1.0, where: str = "true") -> str:
        """A statement that sets the values in some rows."""
        return f"update {table} set {values} where {self.some(table, share, where)}"

    def delete(self, table: str, share: float = 1.0, where: str = "true") -> str:
        """A statement that deletes some rows."""
        return f"delete from {table} where {self.some(table, share, where)}"

    def any(self, columns: str, table: str, per: str, where: str = "true") -> str:
        """A subquery that finds one row, another one for each value of the expression `per`."""
        salt = f"({per}) + {next(self._salts)}"
        return f"(select {columns} from {table} where {where} order by {self._place(table, salt)} limit 1)"

    def _place(self, table: str, salt: int | str) -> str:
        first, *second = KEYS[table]
        key = f"{first}::bigint * 1000003 + {second[0]}" if second else f"{first}::bigint"
        return f"hashint8extended({key}, {salt}), {', '.join(KEYS[table])}"
