"""Repair beside everything else that goes on."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pgtrickle.commands.repair import repair
from pgtrickle.embedded import SUPERUSER
from tests.fixtures.databases import TRICKLE
from tests.recovery.conftest import Shop

BROKEN = (
    "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = 'broken' where pgt_name = any (%s)"
)


def test_a_refresh_that_takes_long_keeps_nobody_else_from_being_repaired(
    shop: Shop, admin: psycopg.Connection, connection: psycopg.Connection
) -> None:
    shop.refresh()
    admin.execute(BROKEN, (["totals", "large"],))
    # as a refresh holds it until it commits
    connection.execute("select from pgtrickle.pgt_stream_tables where pgt_name = 'totals' for no key update")
    patient = psycopg.conninfo.make_conninfo(shop.database.dsn(TRICKLE), options="-c lock_timeout=10s")
    assert repair(patient) == [
        "public.totals is being refreshed now. If that fails, run the repair again.",
        "public.large will be loaded again: a repair was requested.",
    ]
    connection.rollback()
    assert repair(patient) == ["public.totals will be loaded again: a repair was requested."]
    shop.refresh()
    shop.is_exact()
    assert repair(patient) == ["Nothing is broken."]


def test_repairs_at_the_same_time_do_the_work_once(shop: Shop, admin: psycopg.Connection) -> None:
    admin.execute(BROKEN, (["totals"],))
    said: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: said.append(repair(shop.database.dsn(TRICKLE)))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [
        ["Nothing is broken."],
        ["Nothing is broken."],
        ["public.totals will be loaded again: a repair was requested."],
    ]
    shop.refresh()
    shop.is_exact()


def test_a_stranger_repairs_nothing(shop: Shop, admin: psycopg.Connection) -> None:
    shop.refresh()
    admin.execute("create role repairing_stranger")
    admin.execute("grant select on orders, totals to repairing_stranger")
    admin.execute("set role repairing_stranger")
    try:
        for statement in (
            "select * from pgtrickle.repair()",
            "select pgtrickle.repair_stream_table('totals')",
            "select pgtrickle_internal.repair_all()",
            "select pgtrickle_internal.ask_for_repair('totals'::regclass)",
            "select pgtrickle_internal.bind_table(1, 'orders'::regclass)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                admin.execute(statement)
    finally:
        admin.execute("reset role")
        admin.execute("drop owned by repairing_stranger; drop role repairing_stranger")
    assert shop.ask("select count(*) from pgtrickle.pgt_stream_tables where needs_reinit") == [(0,)]


@pytest.mark.diverges
def test_what_reads_a_table_that_stopped_on_divergence_waits_and_goes_on_after_the_repair(
    shop: Shop, admin: psycopg.Connection
) -> None:
    from pgtrickle.catalog.tables import find
    from pgtrickle.commands.define import alter
    from pgtrickle.model.errors import Diverged
    from pgtrickle.model.stream_table import Action, RefreshOutcome
    from pgtrickle.refresh.outcome import Failure
    from pgtrickle.refresh.story import refresh_all

    shop.refresh()
    alter(shop.database.dsn("app"), "totals", {"on_divergence": "stop"})
    with shop.database.connect(SUPERUSER, autocommit=True) as tampering:
        tampering.execute("set pgtrickle.applying = on")
        tampering.execute("delete from totals where region = 'r1'")
    shop.run("update orders set amount = amount + 1 where region = 'r1'")
    with shop.engine.connection() as connection:
        ids = [find(connection, name).id for name in ("totals", "regions")]
    below, above = refresh_all(shop.engine, ids, initiated_by="test", waits=True)
    assert isinstance(below, Failure)
    assert isinstance(below.error, Diverged)
    assert isinstance(above, RefreshOutcome)
    assert above.action is Action.SKIP
    assert shop.ask("select regions from regions") == [(4,)]
    repair(shop.database.dsn("app"), "totals")
    shop.refresh()
    shop.is_exact()
