"""The examination of a log finds what a pooler in transaction mode could not follow."""

from __future__ import annotations

import pytest

from tests.poolers.statements import lasting, parsed

STAMP = "2026-01-01 00:00:00.000 UTC [7] LOG:  "


@pytest.mark.parametrize(
    "line",
    [
        "execute _pg3_0: select 1",
        "statement: prepare p as select 1",
        "statement: deallocate all",
        "statement: LISTEN pgtrickle_wake",
        "execute <unnamed>: select pg_advisory_lock(1)",
        "execute <unnamed>: select pg_try_advisory_lock_shared(1, 2)",
        "execute <unnamed>: select set_config('search_path', coalesce($1, ''), false)",
        "statement: set search_path = ''",
        "statement: reset all",
        "statement: set local lock_timeout = '5s'",
        "statement: create temporary table t (n int)",
        "statement: declare c cursor with hold for select 1",
    ],
)
def test_what_lasts_is_found(line):
    assert lasting(parsed([STAMP + line]))


@pytest.mark.parametrize(
    "lines",
    [
        ["statement: SET application_name='pgtrickle task';"],
        ["statement: BEGIN", "statement: set local lock_timeout = '5s'", "statement: COMMIT"],
        [
            "statement: BEGIN",
            "statement: set transaction isolation level repeatable read",
            "statement: COMMIT",
        ],
        ["execute <unnamed>: select set_config($1, $2, true), false"],
        ["execute <unnamed>: select pg_advisory_xact_lock(1)"],
    ],
)
def test_what_ends_with_its_transaction_is_not(lines):
    assert lasting(parsed([STAMP + line for line in lines])) == []


def test_a_transaction_is_over_after_its_end_and_not_after_a_savepoint():
    lines = [
        "BEGIN",
        "savepoint s",
        "rollback to savepoint s",
        "set local a.b = 1",
        "ROLLBACK",
        "set local a.b = 2",
    ]
    assert lasting(parsed([f"{STAMP}statement: {line}" for line in lines])) == [
        "outside a transaction: set local a.b = 2"
    ]


def test_a_statement_of_many_lines_is_one():
    (one,) = parsed([f"{STAMP}statement: select 1", "\t, 2", "\tfrom t", "other"])
    assert one.text == "select 1\n, 2\nfrom t"
