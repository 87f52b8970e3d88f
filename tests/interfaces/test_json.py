"""The shapes of `--json`: programs rely on these keys."""

from __future__ import annotations

import json

import pytest

STANDING = {
    "name", "owner", "query", "sources", "schedule", "tier", "refresh_mode", "effective_refresh_mode",
    "downgrade_reason", "status", "is_populated", "data_timestamp", "staleness_seconds", "pending_changes",
    "last_refresh_at", "last_action", "last_milliseconds", "consecutive_errors", "last_error", "retry_at",
    "waits", "refresh_timeout", "on_divergence", "repairs", "last_repair_at", "keep_changes",
}  # fmt: skip
PAST_REFRESH = {
    "refresh_id", "name", "action", "status", "started_at", "rows_inserted", "rows_deleted", "milliseconds",
    "reason", "error", "initiated_by", "read_ms", "compute_ms", "apply_ms",
}  # fmt: skip
OUTCOME = {
    "name", "action", "rows_inserted", "rows_deleted", "milliseconds", "reason", "read_ms", "compute_ms",
    "apply_ms", "wait_ms", "commit_ms",
}  # fmt: skip


@pytest.fixture
def sales(source, cli):
    source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)])
    query = "select region, sum(amount) as total from orders group by region"
    return json.loads(cli("create", "sales", "-q", query, "-s", "1m", "--json").out)


def test_create_list_and_status_give_the_same_keys(sales, cli):
    assert sales.keys() == STANDING
    assert json.loads(cli("list", "--json").out) == [json.loads(cli("status", "sales", "--json").out)]
    assert json.loads(cli("status", "--json").out)[0].keys() == STANDING


def test_a_tier_is_altered_and_shown(sales, cli):
    assert sales["tier"] == "hot"
    assert json.loads(cli("alter", "sales", "--tier", "Cold", "--json").out)["tier"] == "cold"
    assert "1m (cold)" in cli("status").out


def test_a_new_stream_table_is_not_loaded(sales):
    assert sales["name"] == "public.sales"
    assert sales["owner"] == "app"
    assert sales["sources"] == ["public.orders"]
    assert sales["schedule"] == "1m"
    assert (sales["refresh_mode"], sales["effective_refresh_mode"]) == ("AUTO", None)
    assert (sales["status"], sales["is_populated"], sales["last_action"]) == ("INITIALIZING", False, None)


@pytest.mark.usefixtures("sales", "shared_spark")
def test_refresh_history_explain_and_verify_in_json(cli):
    outcome = json.loads(cli("refresh", "sales", "--json", role="trickle").out)
    assert outcome.keys() == OUTCOME
    assert (outcome["name"], outcome["action"]) == ("public.sales", "REINITIALIZE")
    assert (outcome["rows_inserted"], outcome["rows_deleted"]) == (2, 0)
    (past,) = json.loads(cli("history", "sales", "--json").out)
    assert past.keys() == PAST_REFRESH
    assert (past["action"], past["status"], past["rows_inserted"]) == ("REINITIALIZE", "COMPLETED", 2)
    explained = json.loads(cli("explain", "sales", "--json", role="trickle").out)
    assert (explained["name"], explained["effective_mode"]) == ("public.sales", "DIFFERENTIAL")
    (verified,) = json.loads(cli("verify", "--json", role="trickle").out)
    assert (verified["name"], verified["rows"]) == ("public.sales", 2)
    now = json.loads(cli("status", "sales", "--json").out)
    assert (now["status"], now["is_populated"], now["pending_changes"]) == ("ACTIVE", True, 0)


@pytest.mark.usefixtures("sales")
def test_what_changes_something_tells_what(cli):
    assert json.loads(cli("alter", "sales", "-m", "FULL", "--json").out)["refresh_mode"] == "FULL"
    assert json.loads(cli("alter", "sales", "--status", "SUSPENDED", "--json").out)["status"] == "SUSPENDED"
    assert json.loads(cli("resume", "sales", "--json").out)["status"] == "INITIALIZING"
    assert json.loads(cli("drop", "sales", "--json").out) == {"dropped": ["public.sales"]}
    assert json.loads(cli("list", "--json").out) == []


def test_install_and_uninstall_tell_what_they_did(cli):
    assert json.loads(cli("install", "--json", role="trickle").out).keys() == {"done"}
    assert json.loads(cli("uninstall", "--json", role="trickle").out)["done"]
