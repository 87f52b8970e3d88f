"""The page of a sidecar with several databases, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from pgtrickle.model.databases import ServedDatabase
from pgtrickle.model.http_settings import HttpAddress
from tests.page.browsers import installed_browser, open_browser

WAIT_MS = 20_000

pytestmark = pytest.mark.slow


def test_the_page_lists_the_databases_and_leads_to_each_of_them(shop, run_fleet):
    program = installed_browser()
    if program is None:
        pytest.skip("there is no Chromium here: run scripts/setup browser")
    first, second = shop(), shop()
    nowhere = ServedDatabase("nowhere", "host=127.0.0.1 port=1 dbname=nowhere")
    served = run_fleet(
        first.served(),
        second.served(),
        nowhere,
        http=HttpAddress("127.0.0.1", 0),
        http_token="a-token-of-the-tests-0123456789",
    )
    assert served.server is not None
    first.shows(0)
    errors: list[str] = []
    # closed before the test ends: an event loop of a browser must not outlive it
    with open_browser(program) as browser:
        page = browser.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(served.server.login_link())
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "1 of 3 databases cannot be served.", timeout=WAIT_MS
        )
        expect(page.get_by_text("cannot connect to nowhere")).to_be_visible(timeout=WAIT_MS)
        page.get_by_role("link", name=first.name, exact=True).click()
        expect(page.get_by_role("row", name="sales")).to_be_visible(timeout=WAIT_MS)
        # signed in once for all databases
        expect(page.get_by_role("button", name="Sign out")).to_be_visible(timeout=WAIT_MS)
        page.get_by_title("All databases").click()
        expect(page.get_by_role("link", name=second.name, exact=True)).to_be_visible(timeout=WAIT_MS)
        page.get_by_role("searchbox").fill("nowhere")
        expect(page.get_by_role("link", name=second.name, exact=True)).to_be_hidden(timeout=WAIT_MS)
    assert errors == []
