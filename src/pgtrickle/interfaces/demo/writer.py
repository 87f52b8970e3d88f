"""Simulates customers: changes the shop in a stream of different transactions."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgtrickle.postgres.connection import Connection, connect

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 0.2
_ROLLBACK_CHANCE = 0.05


@dataclass(slots=True)
class WriteCounts:
    """How much the writer has written so far."""

    rows: int = 0
    transactions: int = 0
    rolled_back: int = 0


class Writer:
    """Changes the shop in its own thread until `stop` is set. The same seed makes the same changes."""

    def __init__(self, dsn: str, stop: threading.Event, seed: int) -> None:
        self.written = WriteCounts()
        self.failure: BaseException | None = None
        self._dsn, self._stop, self._random = dsn, stop, random.Random(seed)
        self._thread = threading.Thread(target=self._write, name="writer")

    def start(self) -> None:
        """Start to write."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the last transaction to end."""
        if self._thread.ident is not None:
            self._thread.join()

    def _write(self) -> None:
        try:
            with connect(self._dsn, application_name="shop") as connection:
                while not self._stop.wait(self._random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)):
                    self._transaction(connection)
        except BaseException as failure:
            self.failure = failure

    def _transaction(self, connection: Connection) -> None:
        kinds, weights = zip(*_CHANGES, strict=True)
        chosen = self._random.choices(kinds, weights, k=self._random.choice((1, 1, 1, 2, 4)))
        rows = sum(change(connection, self._random) for change in chosen)
        if self._random.random() < _ROLLBACK_CHANCE:
            connection.rollback()
            self.written.rolled_back += 1
            return
        connection.commit()
        self.written.rows += rows
        self.written.transactions += 1


def _buy(connection: Connection, draw: random.Random) -> int:
    return connection.execute(
        "insert into shop.orders (customer, product, quantity, amount)"
        " select %(customer)s, p.id, %(quantity)s, %(quantity)s * p.price"
        " from shop.products p where p.id between %(first)s and %(last)s",
        {
            "customer": draw.randint(1, 400),
            "quantity": draw.randint(1, 5),
            "first": (first := draw.randint(1, 42)),
            "last": first + draw.randint(0, 5),
        },
    ).rowcount


def _change_quantities(connection: Connection, draw: random.Random) -> int:
    first = _some_order(connection, draw)
    return connection.execute(
        "update shop.orders o set quantity = %(quantity)s, amount = %(quantity)s * p.price"
        " from shop.products p where p.id = o.product and o.id between %(first)s and %(first)s + %(more)s",
        {"quantity": draw.randint(1, 6), "first": first, "more": draw.randint(0, 6)},
    ).rowcount


def _cancel(connection: Connection, draw: random.Random) -> int:
    first = _some_order(connection, draw)
    return connection.execute(
        "delete from shop.orders where id between %s and %s", (first, first + draw.randint(0, 6))
    ).rowcount


def _reprice(connection: Connection, draw: random.Random) -> int:
    return connection.execute(
        "update shop.products set price = %s where id = %s",
        (draw.randint(300, 6000) / 100, draw.randint(1, 42)),
    ).rowcount


def _move(connection: Connection, draw: random.Random) -> int:
    region = draw.choice(("north", "south", "east", "west", "overseas"))
    return connection.execute(
        "update shop.customers set region = %s, email = %s where id = %s",
        (region, f"{region}{draw.randint(1, 99)}@example.com", draw.randint(1, 400)),
    ).rowcount


def _some_order(connection: Connection, draw: random.Random) -> int:
    row = connection.execute("select min(id), max(id) from shop.orders").fetchone()
    return draw.randint(row[0], row[1]) if row and row[0] is not None else 0


_CHANGES: Final[tuple[tuple[Callable[[Connection, random.Random], int], int], ...]] = (
    (_buy, 10),
    (_change_quantities, 6),
    (_cancel, 4),
    (_reprice, 1),
    (_move, 2),
)
"""The changes that a transaction can make, with their relative frequency."""
