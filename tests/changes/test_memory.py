"""The memory of the driver: counted while rows arrive, shared by all refreshes, given back at the end."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pyarrow as pa
import pytest

from pgtrickle.changes.memory import FREE, Memory, TooMuch, cost

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


def batches(count: int, text: str = "x" * 100) -> Generator[pa.RecordBatch, None, None]:
    """So many batches of a thousand rows."""
    for number in range(count):
        yield pa.record_batch({"n": [number] * 1000, "s": [text] * 1000}, SCHEMA)


ONE = cost(next(batches(1)))


def test_what_is_held_is_given_back_at_the_end():
    memory = Memory(lambda: 100 * ONE)
    with memory.holding() as holding:
        holding.table(batches(3), SCHEMA)
        assert memory.held == 3 * ONE
        assert holding.rows == 3000
    assert memory.held == 0


def test_a_read_that_is_too_large_is_broken_off_and_nothing_of_it_is_held():
    memory, read, is_closed = Memory(lambda: 60 * ONE), [], []

    def endless():
        try:
            while True:
                read.append(1)
                yield from batches(1)
        finally:
            is_closed.append(True)

    with memory.holding() as holding:
        first = holding.table(batches(2), SCHEMA)
        with pytest.raises(TooMuch):
            holding.table(endless(), SCHEMA)
        assert is_closed
        # half of it is for one refresh
        assert len(read) < 31
        assert memory.held == cost(first)


def test_bytes_count_and_not_only_rows():
    memory = Memory(lambda: 64 << 20)
    with memory.holding() as holding, pytest.raises(TooMuch):
        holding.table(batches(1, "x" * 50_000), SCHEMA)


def test_a_limit_of_rows_holds_beside_that_of_bytes():
    with (
        Memory(lambda: 1 << 40).holding(max_rows=2500) as holding,
        pytest.raises(TooMuch, match="2,500 rows"),
    ):
        holding.table(batches(3), SCHEMA)


def test_many_refreshes_at_once_share_the_limit_and_small_ones_always_go_on():
    memory = Memory(lambda: 8 << 20)
    refused, done, barrier = [], [], threading.Barrier(8)

    def refresh():
        with memory.holding() as holding:
            try:
                holding.table(batches(16), SCHEMA)
            except TooMuch:
                refused.append(1)
            barrier.wait()
            assert memory.held <= (8 << 20) + 8 * FREE
            done.append(1)

    threads = [threading.Thread(target=refresh) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 8
    assert refused
    assert memory.held == 0
    with memory.holding() as large, memory.holding() as small:
        large.table(batches(20), SCHEMA)
        small.table(batches(2), SCHEMA)
