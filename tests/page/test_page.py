"""What people do with the page, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.fixtures.waiting import eventually
from tests.page.conftest import TOKEN

QUERY = "select region, sum(amount) as total from orders group by region"

pytestmark = pytest.mark.slow


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)]
    )


@pytest.fixture
def sales(orders, trickle, base):
    trickle.create("sales", QUERY)
    eventually(lambda: trickle.status("sales").is_populated)


def test_a_stream_table_is_created_in_the_page_and_follows_its_source_on_the_screen(orders, visitor, trickle):
    page = visitor.signs_in()
    visitor.opens("#/create")
    page.get_by_label("Name").fill("sales")
    page.get_by_label("Query").fill(QUERY)
    expect(page.get_by_text("Refresh mode: DIFFERENTIAL")).to_be_visible()
    expect(page.get_by_role("cell", name="north")).to_be_visible()
    page.get_by_role("button", name="Create…").click()
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="public.sales")).to_be_visible()
    rows = page.locator("section", has=page.get_by_role("heading", name="Rows"))
    expect(rows.get_by_role("row", name="north 10")).to_be_visible()
    orders.change("insert into orders values (3, 'north', 32)")
    expect(rows.get_by_role("row", name="north 42")).to_be_visible()
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1
    assert trickle.status("sales").is_populated


def test_a_stream_table_that_the_overview_does_not_know_yet_is_shown(sales, visitor):
    def leave_out_tables(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "tables": []})

    visitor.page.route("**/api/v1/overview", leave_out_tables)
    page = visitor.opens("#/tables/public.sales")
    expect(page.get_by_role("heading", name="public.sales")).to_be_visible()
    expect(page.get_by_role("heading", name="Rows")).to_be_visible()


def test_a_stream_table_that_does_not_exist_is_said_to_be_missing(sales, visitor):
    page = visitor.opens("#/tables/public.sails")
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("there is no stream table public.sails", ignore_case=True)
    expect(page.get_by_role("link", name="All stream tables")).to_be_visible()


def test_the_link_that_run_prints_signs_in_once(sales, visit, trickle):
    link = trickle._runs[0].login_link()
    first, second = visit(), visit()
    first.page.goto(link)
    expect(first.page.get_by_role("button", name="Sign out")).to_be_visible()
    assert "login" not in first.page.url
    second.page.goto(link)
    expect(second.page.get_by_role("alert")).to_be_visible()
    expect(second.page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_mistake_in_a_query_is_shown_and_underlined_where_it_is(orders, visitor):
    page = visitor.signs_in()
    visitor.opens("#/create")
    page.get_by_label("Query").fill("select regoin from orders")
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("regoin")
    expect(page.locator(".mistake")).to_have_text("regoin")
    expect(page.get_by_role("button", name="Create…")).to_be_disabled()


def test_a_suspended_stream_table_is_seen_and_resumed(sales, visitor, trickle):
    trickle.alter("sales", status="SUSPENDED")
    page = visitor.signs_in()
    row = page.get_by_role("row", name="sales")
    expect(row).to_contain_text("suspended")
    row.click()
    page.get_by_role("button", name="Resume").first.click()
    expect(page.get_by_text("fresh", exact=True)).to_be_visible()
    assert trickle.status("sales").status.value == "ACTIVE"


def test_a_failing_stream_table_comes_first_with_its_error_and_what_to_do(sales, orders, visitor, trickle):
    trickle.create("ratios", "select id, 100 / amount as ratio from orders")
    eventually(lambda: trickle.status("ratios").is_populated)
    page = visitor.signs_in()
    orders.change("insert into orders values (3, 'east', 0)")
    first = page.locator("a.row").first
    expect(first).to_contain_text("division by zero")
    expect(page.get_by_role("heading", level=1)).to_contain_text("public.ratios has been failing for")
    first.click()
    expect(page.get_by_role("alert")).to_contain_text("division by zero")
    orders.change("delete from orders where id = 3")
    expect(page.get_by_text("fresh", exact=True)).to_be_visible(timeout=60_000)


def test_error_texts_and_rows_are_shown_only_to_people_who_have_signed_in(sales, orders, visitor, trickle):
    trickle.create("ratios", "select id, 100 / amount as ratio from orders")
    eventually(lambda: trickle.status("ratios").is_populated)
    orders.change("insert into orders values (3, 'east', 0)")
    eventually(lambda: trickle.status("ratios").consecutive_errors > 0)
    page = visitor.opens("#/tables/public.ratios")
    expect(page.get_by_role("alert")).to_contain_text("Sign in to see the error.")
    expect(page.get_by_text("Sign in to see its rows.")).to_be_visible()
    assert "division by zero" not in page.content()
    page.get_by_role("banner").get_by_role("button", name="Sign in").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("division by zero")
    expect(page.get_by_role("cell", name="10", exact=True)).to_be_visible()


def test_nothing_is_changed_without_the_token(sales, visitor, trickle):
    page = visitor.opens("#/tables/public.sales")
    page.get_by_role("button", name="Drop").click()
    page.get_by_label("Token").fill("not-the-token-of-this-sidecar")
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    status = page.evaluate(
        "fetch('api/v1/tables/public.sales', {method: 'DELETE'}).then((answer) => answer.status)"
    )
    assert status == 401
    assert trickle.status("sales").is_populated


def test_a_stream_table_is_refreshed_paused_edited_and_dropped(sales, visitor, trickle):
    page = visitor.signs_in()
    visitor.opens("#/tables/public.sales")
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("was refreshed in")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    eventually(lambda: trickle.status("sales").status.value == "SUSPENDED")
    page.get_by_role("button", name="Resume").first.click()
    eventually(lambda: trickle.status("sales").status.value == "ACTIVE")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Schedule").fill("3s")
    page.get_by_role("button", name="Save…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    eventually(lambda: trickle.status("sales").schedule == "3s")
    expect(page.get_by_role("heading", name="public.sales")).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop").click()
    expect(page.get_by_text("There are no stream tables yet.")).to_be_visible()
    assert trickle.list() == []
    visitor.opens("#/graph")
    expect(page.get_by_role("link", name="Create a stream table")).to_be_in_viewport()
    visitor.opens("#/capture")
    expect(page.get_by_text("No stream table reads a source yet.")).to_be_visible()


def test_the_graph_shows_what_reads_what_and_focuses_on_one_table(sales, trickle, visitor):
    trickle.create("large", "select * from sales where total > 7")
    trickle.create("lonely", "select id from orders")
    eventually(lambda: all(table.is_populated for table in trickle.list()))
    page = visitor.opens("#/graph")
    nodes = page.locator("g.node")
    expect(nodes).to_have_count(4)
    assert sorted(nodes.locator("title").all_text_contents()) == [
        "public.large",
        "public.lonely",
        "public.orders",
        "public.sales",
    ]
    expect(page.locator("path.edge")).to_have_count(3)
    page.get_by_role("button", name="public.large").click()
    expect(page.locator("g.node.dimmed")).to_have_count(1)
    page.get_by_role("button", name="public.large").dblclick()
    expect(page.get_by_role("heading", name="public.large")).to_be_visible()


def test_an_edge_lights_up_when_a_change_flows_through_it(sales, orders, visitor):
    page = visitor.opens("#/graph")
    expect(page.locator("path.edge")).to_have_count(1)
    page.evaluate(
        "window.flowed = 0; new MutationObserver((seen) => { window.flowed += seen.filter((change) =>"
        " change.target.classList.contains('flow')).length; })"
        ".observe(document.querySelector('path.edge'), {attributes: true, attributeFilter: ['class']})"
    )
    orders.change("insert into orders values (3, 'north', 1)")
    eventually(lambda: page.evaluate("window.flowed") > 0)


def test_every_page_of_a_stream_table_has_its_content(sales, orders, visitor, trickle):
    orders.change("insert into orders values (3, 'north', 1)")
    page = visitor.signs_in()
    visitor.opens("#/tables/public.sales/plan")
    expect(page.get_by_text("scan public.orders")).to_be_visible()
    visitor.opens("#/tables/public.sales/history")
    expect(page.locator(".history-chart g.column").first).to_be_visible()
    visitor.opens("#/tables/public.sales/definition")
    expect(page.locator("pre.sql")).to_contain_text("sum(amount) AS total")
    visitor.opens("#/tables/public.sales/events")
    expect(page.get_by_text("No failures and no alerts are on record.")).to_be_visible()
    visitor.opens("#/capture")
    expect(page.get_by_role("row", name="public.orders")).to_be_visible()
    visitor.opens("#/sidecars")
    expect(page.get_by_role("heading", name="This sidecar")).to_be_visible()
    expect(page.get_by_role("heading", name="Checks")).to_be_visible()


def test_a_preview_shows_the_change_that_the_next_refresh_makes(sales, orders, visitor, trickle):
    trickle.alter("sales", schedule="manual")
    page = visitor.signs_in()
    orders.change("update orders set amount = 11 where id = 1")
    visitor.opens("#/tables/public.sales")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("tr.deleted")).to_contain_text("10")
    expect(page.locator("tr.inserted")).to_contain_text("11")


def test_a_materialized_view_is_adopted_in_the_page(orders, connection, visitor, trickle):
    connection.execute(f"create materialized view old_sales as {QUERY}")
    connection.commit()
    page = visitor.signs_in()
    visitor.opens("#/adopt")
    page.get_by_role("button", name="Adopt…").click()
    page.get_by_role("dialog").get_by_role("button", name="Adopt").click()
    expect(page.get_by_role("heading", name="public.old_sales")).to_be_visible()
    eventually(lambda: trickle.status("old_sales").status.value == "ACTIVE")


def test_the_page_says_when_the_sidecar_is_gone_and_recovers_by_itself(sales, visitor, trickle, base):
    page = visitor.opens()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    port = base.rpartition(":")[2]
    for run in trickle._runs:
        run.shut_down()
    expect(page.get_by_text("The sidecar has not answered")).to_be_visible()
    expect(page.get_by_role("row", name="sales")).to_be_visible()
    visitor.errors.clear()
    trickle.run_in_background(http=f"127.0.0.1:{port}")
    expect(page.get_by_text("The sidecar has not answered")).to_be_hidden()
    # the attempts while it was gone
    visitor.errors[:] = [error for error in visitor.errors if "ERR_CONNECTION_REFUSED" not in error]


def test_the_overview_is_used_with_the_keyboard_alone(sales, trickle, visitor):
    trickle.create("lonely", "select id from orders")
    page = visitor.opens()
    expect(page.locator("a.row")).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("lone")
    expect(page.locator("a.row")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="public.lonely")).to_be_visible()
    page.keyboard.press("g")
    expect(page.locator("svg.graph")).to_be_visible()


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_is_wider_than_its_window(sales, visit, width, theme):
    visitor = visit(width=width, color_scheme=theme)
    page = visitor.signs_in()
    tabs = [f"#/tables/public.sales/{tab}" for tab in ("overview", "plan", "history", "definition", "events")]
    for place in ("#/", "#/graph", "#/create", "#/adopt", "#/capture", "#/sidecars", *tabs):
        visitor.opens(place)
        expect(page.locator("main .loading")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place


def test_kept_changes_are_shown_row_by_row_as_they_happen(sales, orders, visitor, trickle):
    trickle.alter("sales", keep_changes="1h")
    page = visitor.signs_in()
    visitor.opens("#/tables/public.sales")
    expect(page.get_by_text("No row has changed since you opened this page.")).to_be_visible()
    orders.change("insert into orders values (3, 'north', 1)")
    expect(page.locator("tr.inserted")).to_contain_text("11")
    expect(page.locator("tr.deleted")).to_contain_text("10")
