"""How long readers wait while a materialized view is adopted, or a stream table gets other columns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median

import psycopg

from bench.figures import Figure, at_most
from bench.shop import make_customers, make_orders
from bench.stage import Place, Stage

QUERY = "select id, customer, amount, status from orders"
WIDER = "select id, customer % 10 as kind, amount, status, amount * 2 as doubled from orders"


class Reader:
    """Reads single rows without a pause, and remembers how long the slowest read took."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stop = threading.Event()
        self._is_reading = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.milliseconds: list[float] = []

    def __enter__(self) -> Reader:
        self._thread.start()
        self._is_reading.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True, prepare_threshold=None) as connection:
            while not self._stop.is_set():
                start = time.perf_counter()
                row = connection.execute("select amount from totals where id = 77").fetchone()
                self.milliseconds.append((time.perf_counter() - start) * 1000)
                assert row is not None
                self._is_reading.set()


def adopting(stage: Stage) -> list[Figure]:
    """The slowest read of one row while the whole relation changes its kind or its columns."""
    rows = stage.sizes.orders
    adopted: list[float] = []
    reshaped: list[float] = []
    usual: list[float] = []
    took: dict[str, list[float]] = {"adopting": [], "other columns": []}
    with stage.database("adopting") as place:
        make_customers(place.connection)
        make_orders(place.connection, "orders", rows)
        for _ in range(stage.sizes.long_rounds):
            _make_view(place)
            steps: tuple[tuple[str, list[float], Callable[[], object]], ...] = (
                ("adopting", adopted, lambda: place.trickle.adopt("totals", None)),
                ("other columns", reshaped, lambda: place.trickle.alter("totals", query=WIDER)),
            )
            for name, slowest, step in steps:
                with Reader(place.dsn) as reader:
                    start = time.perf_counter()
                    step()
                    took[name].append((time.perf_counter() - start) * 1000)
                slowest.append(max(reader.milliseconds))
                usual.append(median(reader.milliseconds))
            place.trickle.drop("totals", cascade=True)
    samples = {"adopting, readers wait": adopted, "other columns, readers wait": reshaped, **took}
    return [
        Figure(
            f"adopt a materialized view of {rows:,} rows: the longest that a reader waits",
            max(adopted),
            "ms",
            at_most(100),
            f"median {median(adopted):,.0f} ms; a read takes {median(usual):.2f} ms otherwise;"
            f" the command takes {median(took['adopting']) / 1000:,.1f} s",
            samples,
        ),
        Figure(
            f"give a stream table of {rows:,} rows other columns: the longest that a reader waits",
            max(reshaped),
            "ms",
            at_most(100),
            f"median {median(reshaped):,.0f} ms;"
            f" the command takes {median(took['other columns']) / 1000:,.1f} s",
            samples,
        ),
    ]


def _make_view(place: Place) -> None:
    connection = place.connection
    connection.execute(f"create materialized view totals as {QUERY}")
    connection.execute("create unique index totals_key on totals (id); create index on totals (customer)")
    connection.execute("create view cheap as select id, amount from totals where amount < 1")
    connection.execute("comment on materialized view totals is 'orders'; grant select on totals to public")
    connection.execute("analyze totals")
