"""`pgtrickle top`: what it reads, in which order, and what it prints without a terminal."""

from __future__ import annotations

import json

import pytest

import pgtrickle
from pgtrickle.commands.top import Order, top
from pgtrickle.interfaces.cli.top_view import TopView
from pgtrickle.model.errors import BadOption
from pgtrickle.model.stream_table import Status
from pgtrickle.model.table_state import StreamTableState, allowed_staleness, state_of
from pgtrickle.model.tier import Tier

QUERY = "select region, sum(amount) as total from orders group by region"
HEALTHY = {
    "status": Status.ACTIVE,
    "consecutive_errors": 0,
    "is_populated": True,
    "waits": None,
    "staleness_seconds": 0.0,
    "allowed_seconds": 3.0,
}


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10)])


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, StreamTableState.FRESH),
        ({"staleness_seconds": 3.5}, StreamTableState.LATE),
        ({"staleness_seconds": 3.5, "allowed_seconds": None}, StreamTableState.FRESH),
        ({"waits": "a gate", "staleness_seconds": 9.0}, StreamTableState.WAITING),
        ({"is_populated": False, "staleness_seconds": None}, StreamTableState.INITIALIZING),
        ({"consecutive_errors": 1, "waits": "a gate"}, StreamTableState.FAILING),
        ({"status": Status.ERROR}, StreamTableState.FAILING),
        ({"status": Status.SUSPENDED, "consecutive_errors": 3}, StreamTableState.SUSPENDED),
    ],
)
def test_the_most_urgent_state_is_told(changed, state):
    assert state_of(**{**HEALTHY, **changed}) is state


def test_nothing_is_late_that_was_not_promised():
    assert allowed_staleness("1s", 1.0, Tier.HOT) == 3.0
    assert allowed_staleness("1s", 1.0, Tier.COLD) == 21.0
    assert allowed_staleness("calculated", None, Tier.HOT) == 5.0
    assert allowed_staleness("manual", None, Tier.HOT) is None
    assert allowed_staleness("@hourly", None, Tier.HOT) is None
    assert allowed_staleness("1s", 1.0, Tier.FROZEN) is None


@pytest.mark.usefixtures("orders")
def test_problems_come_first_and_names_can_be_chosen(cli, admin, dsn):
    for name in ("calm", "broken", "paused", '"Odd Name"'):
        cli("create", name, "-q", QUERY)
    admin.execute(
        "update pgtrickle.pgt_stream_tables set is_populated = true, status = 'ACTIVE',"
        " frontier = pg_current_snapshot(), data_timestamp = now();"
        "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = 'division by zero',"
        " consecutive_errors = 1 where pgt_name = 'broken';"
        "update pgtrickle.pgt_stream_tables set status = 'SUSPENDED' where pgt_name = 'paused'"
    )
    found = top(dsn)
    assert [(table.name.name, table.state.value) for table in found.tables] == [
        ("broken", "failing"),
        ("paused", "suspended"),
        ("Odd Name", "waiting"),
        ("calm", "waiting"),
    ]
    assert found.tables[0].problem == "division by zero"
    assert [table.name.name for table in top(dsn, pattern="odd").tables] == ["Odd Name"]
    assert [table.name.name for table in top(dsn, sort="name", pattern="p").tables][-1] == "paused"
    with pytest.raises(BadOption, match="cannot be sorted by colour"):
        top(dsn, sort="colour")


@pytest.mark.usefixtures("orders")
@pytest.mark.every_postgres
def test_errors_are_shown_only_to_who_may_see_them(cli, admin, database):
    cli("create", "broken", "-q", QUERY)
    admin.execute(
        "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = 'secret 42';"
        "do $$ begin if not exists (select from pg_roles where rolname = 'onlooker') then"
        " create role onlooker login password 'onlooker'; end if; end $$"
    )
    assert "secret 42" in cli("top", "--once").out
    strange = cli("top", "--once", dsn=database.server.dsn(database.name, "onlooker", "onlooker"))
    assert (strange.exit_code, "secret" in strange.out, "failing" in strange.out) == (0, False, True)


@pytest.mark.usefixtures("orders")
@pytest.mark.light
def test_without_a_terminal_it_prints_once(cli, dsn):
    assert "No stream tables" in cli("top").out
    cli("create", "sales", "-q", QUERY)
    for arguments in (("top",), ("top", "--once")):
        answer = cli(*arguments, dsn=dsn)
        assert (answer.exit_code, answer.err) == (0, "")
        assert "no sidecar serves this database" in answer.out
        assert "public.sales" in answer.out
        assert "not loaded / calculated" in answer.out
    found = json.loads(cli("top", "--json").out)
    assert [table["state"] for table in found["tables"]] == ["initializing"]
    assert found["sidecars"] == []


@pytest.mark.usefixtures("orders", "shared_spark")
def test_refreshes_are_counted_and_the_last_one_is_told(cli, dsn):
    cli("create", "sales", "-q", QUERY)
    cli("refresh", "sales", role="trickle")
    (sales,) = top(dsn).tables
    assert sales.refreshes_per_second == pytest.approx(0.1)
    assert (sales.last_action, sales.staleness_seconds) == (pgtrickle.Action.REINITIALIZE, 0.0)
    assert sales.last_milliseconds is not None


@pytest.mark.usefixtures("orders")
def test_activity_prints_as_a_table_and_becomes_a_frame(cli, dsn):
    cli("create", "sales", "-q", QUERY)
    with pgtrickle.connect(dsn) as trickle:
        found = trickle.top()
    assert "public.sales  initializing" in repr(found)
    assert "<table>" in found._repr_html_()
    assert list(found.to_pandas()["state"]) == ["initializing"]


def test_keys_select_sort_and_filter():
    view = TopView()
    assert view.press("q", count=5, page=3).is_over
    assert view.press("down", count=5, page=3).selected == 1
    assert view.press("up", count=5, page=3).selected == 0
    assert view.press("end", count=5, page=3).selected == 4
    assert view.press("page down", count=2, page=3).selected == 1
    assert view.press("s", count=5, page=3).order is Order.NAME
    assert view.press("S", count=5, page=3).order is list(Order)[-1]
    typed = view
    for key in ("/", "a", "q", "backspace", "b"):
        typed = typed.press(key, count=5, page=3)
    assert (typed.pattern, typed.typing, typed.is_over) == ("ab", "ab", False)
    assert typed.press("enter", count=5, page=3).typing is None
    assert typed.press("escape", count=5, page=3) == view


@pytest.mark.parametrize(
    ("selected", "rows"), [(0, range(3)), (2, range(3)), (3, range(3, 6)), (7, range(5, 8))]
)
def test_the_selected_row_is_always_on_the_screen(selected, rows):
    assert TopView(selected=selected).shown_rows(8, 3) == rows
    assert selected in rows
