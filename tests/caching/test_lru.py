"""A bounded map holds what was used last, and counts what it drove out."""

from __future__ import annotations

import threading

import pytest

from pgtrickle.model.lru import LruCache


def test_the_entry_not_used_for_longest_goes_first():
    kept: LruCache[str, int] = LruCache(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)
    assert kept.evictions == 1


def test_to_peek_is_not_to_use():
    kept: LruCache[str, int] = LruCache(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.peek("a") == 1
    kept.put("c", 3)
    assert kept.peek("a") is None


def test_without_room_nothing_is_held_and_nothing_is_driven_out():
    kept: LruCache[str, int] = LruCache(0)
    kept.put("a", 1)
    assert (kept.get("a"), len(kept), kept.evictions) == (None, 0, 0)


def test_a_limit_below_zero_is_refused():
    with pytest.raises(ValueError, match="-1"):
        LruCache(-1)


def test_many_threads_never_exceed_the_limit():
    kept: LruCache[int, int] = LruCache(8)
    seen: list[int] = []

    def work(first: int) -> None:
        for number in range(first, first + 500):
            kept.put(number % 40, number)
            kept.get((number * 7) % 40)
            seen.append(len(kept))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2000
    assert max(seen) <= 8
