"""A stream table that does not hold the rows it should hold repairs itself, and keeps the evidence."""

from __future__ import annotations

import json

import psycopg
import pytest

from pgtrickle.commands import status
from pgtrickle.commands.define import alter
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.repair import repair
from pgtrickle.commands.verify import verify
from pgtrickle.interfaces.ddl.execute import execute as run_statements
from pgtrickle.interfaces.ddl.parser import parse
from pgtrickle.model.errors import CommandRefused, Diverged
from pgtrickle.model.stream_table import Action, Status
from tests.fixtures.databases import APP
from tests.recovery.conftest import Shop

pytestmark = pytest.mark.diverges

REASON = "it did not hold the rows that a change took away"
BOTH = "select o.id, t.orders from orders o join totals t on t.region = o.region"
"""Reads a source and a stream table over it, which it must agree with."""


def tamper(admin: psycopg.Connection) -> None:
    """Take a row away past the guard, as only somebody can who may act as the sidecar."""
    admin.execute("set pgtrickle.applying = on")
    admin.execute("delete from large where id = 7")
    admin.execute("reset pgtrickle.applying")


def test_a_diverged_stream_table_is_loaded_anew_with_the_reason_and_the_rows(
    shop: Shop, admin: psycopg.Connection
) -> None:
    shop.refresh()
    tamper(admin)
    admin.execute("listen pgtrickle_alert")
    shop.run("delete from orders where id = 7")
    outcome = refresh(shop.engine, "large")
    assert (outcome.action, outcome.reason) == (Action.REINITIALIZE, REASON)
    shop.refresh()
    shop.is_exact()
    told = [json.loads(note.payload) for note in admin.notifies(timeout=1)]
    (repaired,) = [alert for alert in told if alert["event"] == "self_repair"]
    assert (repaired["stream_table"], repaired["reason"]) == ("public.large", REASON)
    shown = status.table_status(shop.database.dsn(APP), "large")
    assert (shown.status, shown.repairs) == (Status.ACTIVE, 1)
    # which rows were expected; none differs from what the load computed, since the row was to go anyway
    with shop.database.connect(APP) as owner:
        row = owner.execute(
            "select cause, problems, unexpected, missing, repaired_at is not null"
            " from pgtrickle.repairs('large')"
        ).fetchone()
    assert row == ("diverged", ["1 x (7,7,Grace) expected, found 0"], [], [], True)
    # nobody else may read rows, and what everybody may read quotes none
    admin.execute("create role repairs_stranger")
    admin.execute("set role repairs_stranger")
    found = admin.execute("select problems, unexpected, missing from pgtrickle.visible_repairs").fetchall()
    assert found == [(None, None, None)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        admin.execute("select * from pgtrickle.pgt_repairs")
    reasons = admin.execute("select reason from pgtrickle.visible_history").fetchall()
    assert not any("Grace" in str(reason) for reason in reasons)
    admin.execute("reset role")
    admin.execute("drop role repairs_stranger")


def test_one_that_is_to_stop_on_divergence_waits_for_a_person(shop: Shop, admin: psycopg.Connection) -> None:
    dsn = shop.database.dsn(APP)
    alter(dsn, "large", {"on_divergence": "stop"})
    shop.refresh()
    tamper(admin)
    shop.run("delete from orders where id = 7")
    with pytest.raises(Diverged, match=r"run `repair\('public\.large'\)`"):
        refresh(shop.engine, "large")
    shown = status.table_status(dsn, "large")
    assert (shown.status, shown.retry_at, shown.repairs) == (Status.ERROR, None, 0)
    assert "pgtrickle.repair_stream_table('public.large')" in (shown.last_error or "")
    assert shop.ask("select cause, repaired_at is null from pgtrickle.pgt_repairs") == [("diverged", True)]
    assert repair(dsn, "large") == ["public.large will be computed again; only the difference is written."]
    assert refresh(shop.engine, "large").action is Action.REINITIALIZE
    shop.refresh()
    shop.is_exact()
    assert shop.ask("select repaired_at is null from pgtrickle.pgt_repairs") == [(False,)]


def test_what_verify_finds_is_kept_and_repaired(shop: Shop, admin: psycopg.Connection) -> None:
    shop.refresh()
    tamper(admin)
    with pytest.raises(Diverged, match="missing"):
        verify(shop.engine, "large")
    outcome = refresh(shop.engine, "large")
    assert (outcome.action, outcome.rows_inserted) == (Action.REINITIALIZE, 1)
    assert shop.ask("select cause, problems, missing from pgtrickle.pgt_repairs") == [
        ("verified", ["missing (7,7,Grace)"], ["(7,7,Grace)"])
    ]
    verify(shop.engine, "large")


def test_a_suspended_table_is_not_taken_for_a_diverged_one(shop: Shop) -> None:
    """Changes wait for it, so it does not equal its query; neither do tables that must agree with it."""
    dsn = shop.database.dsn(APP)
    shop.run(f"select pgtrickle.create_stream_table('both', '{BOTH}')")
    shop.refresh()
    alter(dsn, "totals", {"status": "SUSPENDED"})
    shop.run("insert into orders values (300, 1, 'later', 300)")
    refused = r"public\.totals cannot be compared with its query: it is suspended"
    with pytest.raises(CommandRefused, match=refused):
        verify(shop.engine, "totals")
    with pytest.raises(CommandRefused, match=r"public\.both cannot be compared.*waits for public\.totals"):
        verify(shop.engine, "both")
    with pytest.raises(CommandRefused, match=refused) as raised:
        verify(shop.engine, None)
    assert "The other 2 equal theirs" in raised.value.message
    assert shop.ask("select count(*) from pgtrickle.pgt_repairs") == [(0,)]
    alter(dsn, "totals", {"status": "ACTIVE"})
    assert len(verify(shop.engine, None)) == 4


def test_what_diverged_below_is_blamed_and_not_what_reads_it(shop: Shop, admin: psycopg.Connection) -> None:
    shop.run(f"select pgtrickle.create_stream_table('both', '{BOTH}')")
    shop.refresh()
    admin.execute("set pgtrickle.applying = on")
    admin.execute("delete from totals where region = 'r1'")
    admin.execute("reset pgtrickle.applying")
    shop.run("update orders set amount = amount + 1 where region = 'r1'")
    with pytest.raises(Diverged, match=r"public\.totals"):
        verify(shop.engine, "both")
    blamed = "select pgt_name from pgtrickle.pgt_repairs join pgtrickle.pgt_stream_tables using (pgt_id)"
    assert shop.ask(blamed) == [("totals",)]
    shop.refresh()
    shop.is_exact()


def test_a_long_row_is_kept_as_evidence_by_its_beginning(shop: Shop, admin: psycopg.Connection) -> None:
    shop.run("update customers set name = repeat('long ', 100000) where id = 1")
    shop.refresh()
    admin.execute("set pgtrickle.applying = on")
    admin.execute("delete from large where id = 8")
    admin.execute("reset pgtrickle.applying")
    with pytest.raises(Diverged) as raised:
        verify(shop.engine, "large")
    assert len(raised.value.message) < 2000
    shop.run("update orders set amount = amount + 100 where id = 8")
    shop.refresh()
    shop.is_exact()
    longest = "select max(pg_column_size(r.*)) < 10000 from pgtrickle.pgt_repairs r"
    assert shop.ask(longest) == [(True,)]


def test_a_table_that_refuses_rows_does_not_repair_itself_for_ever(
    shop: Shop, admin: psycopg.Connection
) -> None:
    shop.refresh()
    admin.execute(
        "create function swallow() returns trigger language plpgsql as $$ begin return null; end $$;"
        "create trigger swallow before insert on large for each row execute function swallow()"
    )
    shop.run("insert into orders values (300, 1, 'swallowed', 300)")
    with pytest.raises(Diverged, match="not every row could be written"):
        refresh(shop.engine, "large")
    assert status.table_status(shop.database.dsn(APP), "large").repairs == 1
    assert status.table_status(shop.database.dsn(APP), "large").consecutive_errors == 1
    admin.execute("drop trigger swallow on large")
    refresh(shop.engine, "large")
    shop.refresh()
    shop.is_exact()


def test_on_divergence_is_an_option_everywhere(app: psycopg.Connection, source, dsn: str) -> None:
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('a', 'select id from orders', on_divergence => 'stop')")
    app.execute("select pgtrickle.create_stream_table('b', 'select id from orders')")
    app.execute("select pgtrickle.alter_stream_table('b', on_divergence => 'STOP')")
    statement = "alter stream table a set (on_divergence = 'repair')"
    owner = psycopg.conninfo.make_conninfo(dsn, user=APP)
    list(run_statements(owner, parse(statement), lambda name: ""))
    found = app.execute(
        "select pgt_name, on_divergence from pgtrickle.stream_tables_info order by 1"
    ).fetchall()
    assert found == [("a", "repair"), ("b", "stop")]
    with pytest.raises(CommandRefused, match="'never' is not a value of on_divergence"):
        alter(owner, "a", {"on_divergence": "never"})
