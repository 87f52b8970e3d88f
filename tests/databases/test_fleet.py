"""One process serves several databases, and none of them delays another."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.databases import ServedDatabase
from pgtrickle.model.errors import TooManyDatabases
from pgtrickle.pipeline.supply import SparkChange
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.slow


def test_each_database_is_refreshed_and_its_events_name_it(shop, run_fleet):
    first, second = shop(), shop()
    served = run_fleet(first.served(), second.served())
    first.write(3)
    second.write(4)
    first.shows(3)
    second.shows(4)

    def told() -> set[str]:
        return {e.database for e in list(served.events) if e.outcome and e.name.name == "sales"}

    # a refresh is told after it has committed
    eventually(lambda: told() == {first.name, second.name})


def test_a_database_that_is_down_is_told_once_and_served_when_it_is_back(shop, run_fleet, server):
    first, second = shop(), shop()
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"alter database {second.name} allow_connections false")
        served = run_fleet(first.served(), second.served())
        first.write(3)
        first.shows(3)
        eventually(lambda: served.state(second) == "unreachable")
        admin.execute(f"alter database {second.name} allow_connections true")
    second.write(4)
    second.shows(4)
    assert len(served.told(second)) == 2, served.told(second)


def test_a_database_that_goes_away_while_it_is_served_delays_no_other(shop, run_fleet, server):
    first, second = shop(), shop()
    served = run_fleet(first.served(), second.served())
    second.shows(0)
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"alter database {second.name} allow_connections false")
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = %s and usename = 'trickle'",
            (second.name,),
        )
        eventually(lambda: served.state(second) == "unreachable")
        first.write(5)
        first.shows(5)
        admin.execute(f"alter database {second.name} allow_connections true")
    second.write(6)
    second.shows(6)


def test_a_read_only_database_is_refused_until_it_is_writable(shop, run_fleet, server):
    first, second = shop(), shop()
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"alter database {second.name} set default_transaction_read_only = on")
        served = run_fleet(first.served(), second.served())
        first.write(1)
        first.shows(1)
        eventually(lambda: served.state(second) == "refused")
        admin.execute(f"alter database {second.name} reset default_transaction_read_only")
    second.write(2)
    second.shows(2)


def test_a_database_with_a_catalog_of_another_version_is_refused_and_the_others_are_served(shop, run_fleet):
    first, second = shop(), shop()
    with second.database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute(
            "delete from pgtrickle.pgt_schema_version where version = (select max(version)"
            " from pgtrickle.pgt_schema_version)"
        )
    served = run_fleet(first.served(), second.served())
    first.write(1)
    first.shows(1)
    eventually(lambda: any("pgtrickle install" in (e.error.hint or "") for e in served.events if e.error))
    assert served.state(second) == "refused"


def test_a_refresh_that_hangs_in_one_database_leaves_the_others_their_workers(shop, run_fleet):
    slow, quick = shop(), shop()
    served = run_fleet(slow.served(), quick.served(), worker_pool_size=1)
    slow.shows(0)
    quick.shows(0)
    with slow.database.connect("app") as holder:
        holder.execute("lock table sales in access exclusive mode")
        slow.write(1)
        eventually(lambda: served.member(slow).share.used == 1)
        quick.write(2)
        quick.shows(2)
    slow.shows(1)


def test_a_database_past_the_limit_is_not_served(shop, run_fleet):
    first, second = shop(), shop()
    served = run_fleet(first.served(), max_databases=1)
    with pytest.raises(TooManyDatabases, match=second.name) as refusal:
        served.fleet.add(second.served())
    assert "PGTRICKLE_MAX_DATABASES" in (refusal.value.hint or "")


def test_a_database_that_leaves_the_fleet_has_no_connections_left(shop, run_fleet, server):
    first, second = shop(), shop()
    served = run_fleet(first.served(), second.served())
    second.shows(0)
    served.fleet.remove(second.name)
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        eventually(
            lambda: (
                admin.execute(
                    "select count(*) from pg_stat_activity where datname = %s and usename = 'trickle'",
                    (second.name,),
                ).fetchone()
                == (0,)
            )
        )
    first.write(1)
    first.shows(1)


def test_every_database_shows_the_workers_of_all(shop, run_fleet):
    first, second = shop(), shop()
    run_fleet(first.served(quota=2), second.served(), worker_pool_size=3)
    first.shows(0)
    second.shows(0)

    def allocation():
        rows = first.app.execute("select database, sidecars, quota from pgtrickle.worker_allocation_status()")
        return set(rows)

    eventually(lambda: allocation() == {(first.name, 1, 2), (second.name, 1, 1)})

    def inventory():
        rows = first.app.execute(
            "select database, is_here, workers, state, refreshing is null"
            " from pgtrickle.server_worker_inventory"
        )
        return sorted(rows.fetchall(), key=lambda row: not row[1])

    # the loop of the second database may still report that it starts
    serving = [(first.name, True, 3, "serving", False), (second.name, False, 3, "serving", True)]
    eventually(lambda: inventory() == serving)


def test_an_address_that_leads_nowhere_does_not_end_the_process(shop, run_fleet):
    first = shop()
    nowhere = ServedDatabase("nowhere", "host=127.0.0.1 port=1 dbname=nowhere user=trickle connect_timeout=2")
    run_fleet(nowhere, first.served())
    first.write(7)
    first.shows(7)


def test_what_happens_to_spark_is_told_once(shop, run_fleet):
    first, second = shop(), shop()
    served = run_fleet(first.served(), second.served())
    first.shows(0)
    second.shows(0)
    served.supply._tell(SparkChange("Spark is back after 3.0 s", None, 3.0))
    alerts = "select event from pgtrickle.alerts(now() - interval '1 hour') where event ~ 'spark'"
    eventually(lambda: first.app.execute(alerts).fetchall() == [("spark_returned",)])
    eventually(lambda: second.app.execute(alerts).fetchall() == [("spark_returned",)])
    told = [event.note for event in served.events if event.subject == "Spark"]
    assert told == ["Spark is back after 3.0 s"]
