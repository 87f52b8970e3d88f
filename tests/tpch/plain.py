"""Changes as an application makes them: spread over all tables by their size, nothing left dangling.

New rows resemble existing ones and updated rows take over values of others, so that the data keeps its
distribution. Orders come and go with their lineitems, parts with their stock. What many rows hang on,
suppliers, nations and regions, is changed row by row; of those only new ones are deleted.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import Any, Final

import psycopg

from tests.tpch import plain_statements as statements
from tests.tpch.drawing import KEYS
from tests.tpch.loading import TABLES

_INSERTED_OR_DELETED: Final = 0.15
_SMALL: Final = ("region", "nation", "supplier", "customer", "part")
_LINES_OF_AN_ORDER: Final = 7


class PlainChanges:
    """Batches of changes to the tables at a connection, the same in every run."""

    def __init__(self, connection: psycopg.Connection[Any], seed: int = 0) -> None:
        self._connection = connection
        self._random = random.Random(seed)
        self._known = {table: self._keys(table) for table in (*_SMALL, "orders")}
        self._next = {table: max(keys) + 1 for table, keys in self._known.items()}
        self._new: dict[str, deque[int]] = defaultdict(deque)
        self._sizes = {table: self._count(table) for table in TABLES}

    @property
    def size(self) -> int:
        """How many rows all tables had together when the first batch was made."""
        return sum(self._sizes.values())

    def make(self, rows: int) -> None:
        """Change that many rows in one transaction; at least some of every table."""
        with self._connection.transaction():
            left = rows - sum(self._change_small(table, self._share(table, rows)) for table in _SMALL)
            left -= self._change_stock(self._share("partsupp", rows))
            left -= self._change_orders(self._share("orders", rows))
            self._run(statements.UPDATE["lineitem"], *self._lines(max(1, left)))

    def _change_small(self, table: str, share: int) -> int:
        """Insert, delete what was inserted before, and update; gives the number of rows changed."""
        keys, models = self._fresh(table, self._turnover(share))
        gone = self._oldest(table, len(keys))
        changed = self._run(statements.INSERT[table], keys, models)
        changed += self._run(statements.DELETE[table], gone)
        if table == "part":
            changed += self._run(statements.INSERT["partsupp"], keys, models)
            changed += self._run(statements.DELETE["partsupp"], gone)
        self._new[table] += keys
        updated = self._some(table, max(1, share - len(keys) - len(gone)))
        return changed + self._run(statements.UPDATE[table], updated, self._some(table, len(updated)))

    def _change_stock(self, share: int) -> int:
        parts = self._some("part", max(1, round(share * (1 - 2 * _INSERTED_OR_DELETED))))
        return self._run(statements.UPDATE["partsupp"], parts, self._some("part", len(parts)))

    def _change_orders(self, share: int) -> int:
        """Orders come, go and get another number with all their lineitems; the others are updated."""
        keys, models = self._fresh("orders", self._turnover(share))
        touched = self._taken("orders", share - len(keys))
        gone, (old, *updated) = touched[: len(keys)], touched[len(keys) :]
        (new,), _ = self._fresh("orders", 1)
        changed = self._run(statements.RENUMBER["orders"], new, old)
        changed += self._run(statements.RENUMBER["lineitem"], new, old)
        for table in ("orders", "lineitem"):
            changed += self._run(statements.INSERT[table], keys, models)
            changed += self._run(statements.DELETE[table], gone)
        customers = self._models("customer", len(updated))
        changed += self._run(statements.UPDATE["orders"], updated, customers)
        self._known["orders"] += [*updated, *keys, new]
        return changed

    def _lines(self, count: int) -> tuple[list[int], list[int], list[int], list[int]]:
        """Lineitems of different orders, with the quantity and the part that they get."""
        orders = self._some("orders", count)
        found = self._connection.execute(statements.LAST_LINES, (orders,)).fetchall()
        quantities = [self._random.randint(1, 50) for _ in found]
        numbers = [self._random.randint(1, min(last, _LINES_OF_AN_ORDER)) for _, last in found]
        return [order for order, _ in found], numbers, quantities, self._models("part", len(found))

    def _share(self, table: str, rows: int) -> int:
        return max(3, round(rows * self._sizes[table] / self.size))

    def _turnover(self, share: int) -> int:
        return max(1, round(share * _INSERTED_OR_DELETED))

    def _fresh(self, table: str, count: int) -> tuple[list[int], list[int]]:
        """Keys that no row has had, and for each of them an existing row to resemble."""
        first = self._next[table]
        self._next[table] += count
        return list(range(first, first + count)), self._models(table, count)

    def _oldest(self, table: str, count: int) -> list[int]:
        return [self._new[table].popleft() for _ in range(min(count, len(self._new[table])))]

    def _some(self, table: str, count: int) -> list[int]:
        keys = self._known[table]
        return self._random.sample(keys, min(count, len(keys)))

    def _models(self, table: str, count: int) -> list[int]:
        """Existing rows to take values from: several times the same if there are too few."""
        keys = self._known[table]
        return self._some(table, count) if count <= len(keys) else self._random.choices(keys, k=count)

    def _taken(self, table: str, count: int) -> list[int]:
        """Some keys, which are not known any more."""
        keys, taken = self._known[table], []
        for _ in range(count):
            place = self._random.randrange(len(keys))
            keys[place], keys[-1] = keys[-1], keys[place]
            taken.append(keys.pop())
        return taken

    def _run(self, statement: str, *values: object) -> int:
        return self._connection.execute(statement, values).rowcount

    def _keys(self, table: str) -> list[int]:
        key = KEYS[table][0]
        return [row[0] for row in self._connection.execute(f"select {key} from {table} order by {key}")]

    def _count(self, table: str) -> int:
        row = self._connection.execute(f"select count(*) from {table}").fetchone()
        assert row is not None
        return int(row[0])
