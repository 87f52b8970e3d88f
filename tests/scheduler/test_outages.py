"""A sidecar whose server goes away says so once, and once more when it is back."""

from __future__ import annotations

import pytest

from pgtrickle.model.errors import ConnectionFailed
from pgtrickle.postgres.pool import Pool
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import TEMPLATE, TRICKLE, Templates, create_database
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually


def no_spark():
    raise AssertionError("nothing here needs Spark")


@pytest.mark.slow
def test_an_outage_of_the_server_is_told_once_and_its_end_once(own_server, monkeypatch):
    attempts: list[Pool] = []
    connect = Pool.autocommitting

    def counted(pool):
        attempts.append(pool)
        return connect(pool)

    monkeypatch.setattr(Pool, "autocommitting", counted)
    Templates().ensure(own_server)
    database = create_database(own_server, "outage", TEMPLATE)
    engine = Engine(database.dsn(TRICKLE), no_spark)
    try:
        with running(engine) as sidecar:
            sidecar.looks_again(1)
            own_server.stop()
            eventually(lambda: bool(sidecar.errors()))
            before = len(attempts)
            eventually(lambda: len(attempts) >= before + 3)
            own_server.start()
            eventually(lambda: any(event.note for event in sidecar.events))
            sidecar.looks_again(2)
    finally:
        engine.close()
    lost, back = sidecar.events
    assert isinstance(lost.error, ConnectionFailed)
    assert (lost.subject, back.error) == ("database", None)
    assert (back.note or "").startswith("connected again after ")
