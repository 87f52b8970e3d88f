"""Stopping: what is at hand finishes, or is given up in time; either way nothing is lost."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pgtrickle.model.errors import Abandoned
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually


def no_spark() -> None:
    raise AssertionError("nothing here needs Spark")


@pytest.mark.light
def test_what_is_given_up_ends_in_whatever_thread_it_runs(database, admin):
    engine = Engine(database.dsn(TRICKLE), no_spark)  # type: ignore[arg-type]
    ended: list[str | None] = []

    def work() -> None:
        try:
            with engine.connection() as connection:
                connection.execute("select pg_sleep(120)")
        except psycopg.Error as error:
            ended.append(error.sqlstate)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    sleeping = (
        "select count(*) from pg_stat_activity where query = 'select pg_sleep(120)' and state = 'active'"
    )
    eventually(lambda: admin.execute(sleeping).fetchone() == (3,))
    engine.abandon()
    for thread in threads:
        thread.join(90)
    assert ended == ["57014"] * 3
    assert engine.is_abandoned
    with pytest.raises(Abandoned), engine.connection():
        pass
    engine.close()
