"""The HTTP API and the web page with a thousand stream tables, and how soon the page shows a change."""

from __future__ import annotations

import time
from typing import Final

import httpx
from playwright.sync_api import Page

from bench.crowd import crowd
from bench.figures import Figure, at_most
from bench.stage import Place, Stage
from bench.timing import percentile
from pgtrickle.interfaces.background import BackgroundRun
from tests.fixtures.waiting import eventually
from tests.page.browsers import installed_browser, open_browser

REQUESTS: Final = 200
VISITS: Final = 8
CHANGES: Final = 30
STATUS_LIMIT: Final = 100.0
PAGE_LIMIT: Final = 1_000.0
SCREEN_LIMIT: Final = 500.0


def web_page(stage: Stage) -> list[Figure]:
    """The overview of a crowd by HTTP and in a browser, then one number on the page of a stream table."""
    program = installed_browser()
    if program is None:
        return []
    tables = stage.sizes.many_tables[0]
    with stage.database("web_page") as place:
        crowd(place, tables)
        place.connection.execute("create table readings (id integer primary key, value integer)")
        place.connection.execute("insert into readings values (1, 0)")
        place.trickle.create("total", "select sum(value) as total from readings")
        with _served(place) as sidecar, open_browser(program) as browser:
            assert sidecar.http_url is not None
            base = sidecar.http_url.rstrip("/")
            eventually(lambda: place.trickle.status("total").is_populated)
            status = _statuses(base)
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(sidecar.login_link())
            page.get_by_role("button", name="Sign out").wait_for()
            visits = [_visit(page, base) for _ in range(VISITS)][1:]
            shown = _changes_on_screen(place, page, base)
    return [
        Figure(
            f"GET /overview, {tables:,} stream tables, 95 %",
            percentile(status, 95),
            "ms",
            at_most(STATUS_LIMIT),
            f"median {percentile(status, 50):.3g} ms",
            {"milliseconds": status},
        ),
        Figure(
            f"the overview page with {tables:,} stream tables can be used, 95 %",
            percentile(visits, 95),
            "ms",
            at_most(PAGE_LIMIT),
            f"from the address to a found row; median {percentile(visits, 50):.3g} ms",
            {"milliseconds": visits},
        ),
        Figure(
            "a write to a source until its number is on the screen, 95 %",
            percentile(shown, 95),
            "ms",
            at_most(SCREEN_LIMIT),
            f"median {percentile(shown, 50):.3g} ms; schedule calculated",
            {"milliseconds": shown},
        ),
    ]


def _served(place: Place) -> BackgroundRun:
    """A sidecar with a page, which says nothing."""
    return place.trickle.run_in_background(lambda event: None, http="127.0.0.1:0")


def _statuses(base: str) -> list[float]:
    took = []
    with httpx.Client(base_url=base, timeout=30) as client:
        for _ in range(REQUESTS):
            began = time.perf_counter()
            client.get("/api/v1/overview").raise_for_status()
            took.append((time.perf_counter() - began) * 1000)
    return took


def _visit(page: Page, base: str) -> float:
    """Open the overview and find the last row by typing."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"{base}/#/")
    page.get_by_label("Search stream tables").fill("kept_7_3")
    page.locator("a.row", has_text="kept_7_3").first.wait_for()
    return (time.perf_counter() - began) * 1000


def _changes_on_screen(place: Place, page: Page, base: str) -> list[float]:
    page.goto(f"{base}/#/tables/public.total")
    page.get_by_role("cell", name="0", exact=True).wait_for()
    took = []
    for number in range(1, CHANGES + 1):
        began = time.perf_counter()
        place.connection.execute("update readings set value = %s", (number,))
        page.get_by_role("cell", name=str(number), exact=True).wait_for()
        took.append((time.perf_counter() - began) * 1000)
    return took[1:]
