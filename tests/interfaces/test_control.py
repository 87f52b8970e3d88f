"""Gates and draining on the command line."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def totals(source, cli):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    cli("create", "totals", "-q", "select sum(amount) as total from orders")


def test_a_gate_is_explained_by_status_until_it_is_opened(cli):
    assert cli("gate", "orders").out == (
        "Gated orders. Not refreshed until `pgtrickle ungate orders`: public.totals.\n"
    )
    assert "public.totals is waiting: public.orders has been gated since " in " ".join(
        cli("status").out.split()
    )
    assert json.loads(cli("status", "totals", "--json").out)["waits"].startswith(
        "public.orders has been gated"
    )
    assert json.loads(cli("ungate", "orders", "--json").out) == {
        "source": "orders",
        "is_gated": False,
        "was_gated": True,
    }
    assert cli("ungate", "orders").out == "orders was not gated. Nothing was changed.\n"
    assert json.loads(cli("status", "totals", "--json").out)["waits"].startswith("no sidecar serves")


@pytest.mark.usefixtures("shared_spark")
def test_a_refresh_by_hand_is_refused_naming_the_gate(cli):
    cli("gate", "orders")
    refused = cli("refresh", "totals", role="trickle")
    assert refused.exit_code == 4
    assert "PGT-S006" in refused.err
    assert "public.orders has been gated since" in " ".join(refused.err.split())
    cli("ungate", "orders")
    assert cli("refresh", "totals", role="trickle").exit_code == 0


def test_gating_what_is_no_source_is_refused_with_a_hint(cli):
    refused = cli("gate", "totals")
    assert refused.exit_code == 2
    assert "list_sources" in refused.err


def test_a_drained_database_says_so_until_it_is_undrained(cli):
    assert cli("drain", "--timeout", "5", role="trickle").out.startswith("Drained: no refresh is running")
    assert "is waiting: the database has been drained since" in " ".join(cli("status").out.split())
    refused = cli("refresh", "totals", role="trickle")
    assert (refused.exit_code, "PGT-S007" in refused.err) == (4, True)
    assert cli("undrain", role="trickle").out == "Refreshes can start again.\n"
    assert cli("undrain", role="trickle").out == "The database was not drained. Nothing was changed.\n"
    assert json.loads(cli("status", "totals", "--json").out)["waits"].startswith("no sidecar serves")


def test_a_drain_that_must_wait_for_a_refresh_says_so(cli, connection):
    connection.execute("select pgtrickle_internal.may_begin()")
    refused = cli("drain", "--timeout", "0", role="trickle")
    assert (refused.exit_code, "still running after 0 s" in refused.err) == (4, True)
