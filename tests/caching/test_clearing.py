"""Clearing the caches empties every level in every sidecar, and only who runs pgtrickle may do it."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.catalog.compiled import clear_caches
from pgtrickle.scheduler.service.loop import Loop
from tests.caching.conftest import compiled_by, counted

LEVELS = ("host_hits", "catalog_hits", "compiles")
QUERY = "select customer, sum(amount) as total from orders group by customer"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, customer int, amount int)", rows=[(1, 1, 10), (2, 2, 5)])


def test_a_running_sidecar_compiles_anew_at_its_next_refresh(orders, defined, sidecar, tmp_path, connection):
    engine = sidecar(cache_directory=tmp_path / "plans")
    names = [defined(QUERY), defined(QUERY)]
    for name in names:
        compiled_by(engine, name)
    assert clear_caches(connection) == 2
    connection.commit()
    assert clear_caches(connection) == 0
    connection.commit()
    assert len(list((tmp_path / "plans").glob("*/*"))) == 2
    compiled_by(engine, names[0])
    assert counted(engine, *LEVELS, "clears", "entries") == (0, 0, 3, 1, 1)
    assert len(list((tmp_path / "plans").glob("*/*"))) == 1


def test_an_idle_sidecar_notices_at_its_next_tick(orders, stream_table, engine, connection):
    sums = stream_table(QUERY)
    for number in (3, 4, 5):
        orders.change(f"insert into orders values ({number}, 1, 1)")
        sums.refresh()
    assert counted(engine, "entries") == (1,)
    assert counted(engine, "spark_plans")[0] > 0
    with Loop(engine, lambda event: None).dispatcher() as dispatcher:
        dispatcher.tick()
        clear_caches(connection)
        connection.commit()
        dispatcher.tick()
    assert counted(engine, "entries", "spark_plans", "kept_reads", "clears") == (0, 0, 0, 1)


def test_the_tick_of_a_sidecar_that_starts_later_clears_nothing(orders, defined, sidecar, connection):
    clear_caches(connection)
    connection.commit()
    engine = sidecar()
    compiled_by(engine, defined(QUERY))
    assert counted(engine, "clears", "entries") == (0, 1)


def test_the_statistics_count_entries_and_bytes(orders, defined, sidecar, connection):
    compiled_by(sidecar(), defined(QUERY))
    ((version, entries, size, oldest, newest, generation),) = connection.execute(
        "select * from pgtrickle_internal.cache_stats()"
    ).fetchall()
    assert len(version) == 32
    assert (entries, oldest, generation) == (1, newest, 0)
    assert connection.execute("select octet_length(payload) from pgtrickle.pgt_compiled").fetchone() == (
        size,
    )


@pytest.mark.parametrize(
    "statement",
    [
        "select payload from pgtrickle.pgt_compiled",
        "insert into pgtrickle.pgt_compiled values (1, 'v', 'f', 0, '')",
        "update pgtrickle.pgt_compiled set payload = ''",
        "delete from pgtrickle.pgt_compiled",
        "update pgtrickle.pgt_caches set generation = 7",
        "select pgtrickle_internal.clear_caches()",
        "select pgtrickle_internal.cache_stats()",
    ],
)
def test_nobody_else_reads_or_writes_what_sidecars_run(statement, app):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(statement)
