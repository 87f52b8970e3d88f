"""Each database always has its quota; beyond it, it uses what others leave free."""

from __future__ import annotations

from pgtrickle.scheduler.service.worker_shares import WorkerShares


def test_a_database_uses_all_workers_while_the_others_are_idle():
    shares = WorkerShares(3)
    busy, _ = shares.join(1), shares.join(1)
    assert [busy.take() for _ in range(4)] == [True, True, True, False]


def test_a_database_gets_its_quota_however_busy_the_others_are():
    shares = WorkerShares(2)
    busy, quiet = shares.join(1), shares.join(2)
    assert [busy.take(), busy.take()] == [True, True]
    assert [quiet.take(), quiet.take(), quiet.take()] == [True, True, False]


def test_a_free_worker_goes_to_the_database_with_the_smallest_part_of_its_quota():
    shares, took = WorkerShares(5), []
    first, second = shares.join(1), shares.join(2)

    def try_again(share):
        if share.take():
            took.append(share)

    first.on_free, second.on_free = (lambda: try_again(first)), (lambda: try_again(second))
    assert [first.take() for _ in range(3)] == [True, True, True]
    assert [second.take() for _ in range(2)] == [True, True]
    assert [first.take(), second.take()] == [False, False]
    first.give_back()
    assert took == [second]
    assert (first.usage(), second.usage()) == ((2, 1, True), (3, 2, False))


def test_a_database_that_leaves_gives_back_what_it_still_uses():
    shares = WorkerShares(1)
    leaving, staying = shares.join(1), shares.join(1)
    assert leaving.take()
    shares.leave(leaving)
    leaving.give_back()
    assert staying.take()
    assert shares._used == 1
