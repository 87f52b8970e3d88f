"""`python -m tests.page.screenshots DIRECTORY`: pictures of the page over a shop that is open.

It starts a PostgreSQL, a Spark, a sidecar and a browser of its own, and lets one stream table fail, so that
the pictures show problems too.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from playwright.sync_api import Page

import pgtrickle
from pgtrickle.embedded import embedded_server
from pgtrickle.interfaces.demo.shop import EXAMPLES, fill
from pgtrickle.interfaces.demo.writer import Writer
from pgtrickle.interfaces.python import Trickle
from pgtrickle.postgres.connection import connect as connect_to
from tests.fixtures.waiting import eventually
from tests.page.browsers import installed_browser, open_browser

QUERY: Final = """select c.region, p.category, sum(o.amount) as revenue
from shop.orders o
join shop.customers c on c.id = o.customer
join shop.products p on p.id = o.product
group by c.region, p.category"""
FAILING_QUERY: Final = "select id, 1000 / (quantity - 3) as rate from shop.orders where id < 0"
"""Fails as soon as there is an order with a negative number and the quantity 3."""
BUSY_REFRESHES: Final = 40
"""How many refreshes the history shows when the pictures are taken."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: where it is taken, how large the window is, and which theme it has."""

    name: str
    place: str
    theme: str = "light"
    width: int = 1280
    height: int = 800


SHOTS: Final = (
    Shot("overview-light", "#/"),
    Shot("overview-dark", "#/", "dark"),
    Shot("overview-phone", "#/", "light", 375, 760),
    Shot("graph-dark", "#/graph/shop.best_sellers", "dark"),
    Shot("table-light", "#/tables/shop.best_sellers"),
    Shot("history-light", "#/tables/shop.revenue_by_region/history"),
    Shot("plan-light", "#/tables/shop.best_sellers/plan"),
    Shot("create-light", "#/create"),
    Shot("create-phone", "#/create", "dark", 375, 760),
    Shot("capture-light", "#/capture"),
    Shot("sidecars-dark", "#/sidecars", "dark"),
)


def main(directory: Path) -> None:
    """Take all pictures."""
    program = installed_browser()
    if program is None:
        sys.exit("there is no Chromium here: run scripts/setup browser")
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgtrickle-screenshots-")))
        # PostgreSQL does not run as root, so its account must be able to enter the directory
        home.chmod(0o755)
        dsn = stack.enter_context(embedded_server(home / "server"))
        token = secrets.token_urlsafe(24)
        (home / "token").write_text(token)
        (home / "token").chmod(0o600)
        trickle = stack.enter_context(pgtrickle.connect(dsn, http_token_file=str(home / "token")))
        base = _open_shop(trickle, dsn)
        stop = threading.Event()
        writer = Writer(dsn, stop, 1)
        writer.start()
        stack.callback(writer.join)
        stack.callback(stop.set)
        _await_history(trickle)
        browser = stack.enter_context(open_browser(program))
        for shot in SHOTS:
            context = browser.new_context(
                viewport={"width": shot.width, "height": shot.height},
                color_scheme=shot.theme,  # type: ignore[arg-type]
            )
            page = context.new_page()
            page.goto(f"{base}/#token={token}")
            page.get_by_role("button", name="Sign out").wait_for()
            page.goto(f"{base}/{shot.place}")
            _let_it_settle(page, shot)
            page.screenshot(path=directory / f"{shot.name}.png")
            context.close()


def _open_shop(trickle: Trickle, dsn: str) -> str:
    with connect_to(dsn) as connection:
        fill(connection)
    trickle.install()
    for example in EXAMPLES:
        trickle.create(example.name, example.query, example.schedule)
    trickle.create(
        "shop.order_rates", "select id, 1000 / (quantity - 3) as rate from shop.orders where id < 0"
    )
    sidecar = trickle.run_in_background(http="127.0.0.1:0")
    assert sidecar.http_url is not None
    eventually(lambda: all(table.is_populated for table in trickle.list()))
    with psycopg.connect(dsn, autocommit=True) as shopkeeper:
        shopkeeper.execute(
            "insert into shop.orders (id, customer, product, quantity, amount)"
            " select -1, customer, product, 3, amount from shop.orders limit 1"
        )
    return sidecar.http_url.partition("#")[0].rstrip("/")


def _await_history(trickle: Trickle) -> None:
    eventually(lambda: len(trickle.history("shop.revenue_by_region", BUSY_REFRESHES)) >= BUSY_REFRESHES)


def _let_it_settle(page: Page, shot: Shot) -> None:
    if shot.place == "#/create":
        page.get_by_label("Name").fill("shop.revenue_by_category")
        page.get_by_label("Query").fill(QUERY)
        page.get_by_role("heading", name="First rows").wait_for()
    page.locator("main .loading").wait_for(state="detached")
    page.wait_for_timeout(600)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
