"""The web page in a real browser, in front of a sidecar on the Spark of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

import pgtrickle
from pgtrickle.interfaces.background import BackgroundRun
from pgtrickle.interfaces.python import Trickle
from pgtrickle.pipeline.session import Spark
from tests.page.browsers import installed_browser, open_browser

TOKEN = "a-token-of-the-tests-0123456789"
WAIT_MS = 60_000
"""How long to wait for something to appear: the machine may be busy with other tests."""
EXPECTED_STATUSES = ("401", "409", "422")
"""What a page may be told when a test does something that is refused; the browser logs it as an error."""


@dataclass(slots=True)
class Visitor:
    """A person with a browser window, and the errors that the page has written to its console."""

    page: Page
    base: str
    login_link: Callable[[], str]
    errors: list[str] = field(default_factory=list)

    def opens(self, place: str = "#/") -> Page:
        self.page.goto(f"{self.base}/{place}")
        self.page.wait_for_selector("main :not(.loading)")
        return self.page

    def signs_in(self) -> Page:
        """Open the link that `run` prints, with a code behind the #."""
        self.page.goto(self.login_link())
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self.page

    def note(self, message: ConsoleMessage) -> None:
        is_refusal = any(f"status of {status}" in message.text for status in EXPECTED_STATUSES)
        # a page may still ask for a stream table that has just been dropped
        is_gone = "status of 404" in message.text and "/api/v1/tables/" in message.location["url"]
        if message.type in ("error", "warning") and not is_refusal and not is_gone:
            self.errors.append(message.text)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = installed_browser()
    if program is None:
        pytest.skip("there is no Chromium here: run scripts/setup browser")
    expect.set_options(timeout=WAIT_MS)
    with open_browser(program) as browser:
        yield browser


@pytest.fixture
def trickle(
    dsn: str, spark: Spark, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Trickle]:
    admin.execute("grant create on schema public to trickle")
    monkeypatch.setenv("PGTRICKLE_HTTP_TOKEN", TOKEN)
    with pgtrickle.connect(dsn, spark=spark.small, stop_timeout=20) as trickle:
        yield trickle


@pytest.fixture
def sidecar(trickle: Trickle) -> BackgroundRun:
    """A sidecar that runs."""
    return trickle.run_in_background(http="127.0.0.1:0")


@pytest.fixture
def base(sidecar: BackgroundRun) -> str:
    """Its address."""
    assert sidecar.http_url is not None
    return sidecar.http_url.partition("#")[0].rstrip("/")


Visit = Callable[..., Visitor]


@pytest.fixture
def visit(browser: Browser, base: str, sidecar: BackgroundRun) -> Iterator[Visit]:
    """Opens browser windows, called as `visit(width=375, color_scheme="dark")`; fails on console errors."""
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []

    def open_window(*, width: int = 1280, height: int = 860, **more: object) -> Visitor:
        context = browser.new_context(viewport={"width": width, "height": height}, **more)  # type: ignore[arg-type]
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        visitor = Visitor(context.new_page(), base, sidecar.login_link)
        visitor.page.on("console", lambda message: visitor.note(message))
        visitor.page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        visitors.append(visitor)
        return visitor

    yield open_window
    for context in contexts:
        context.close()
    assert [visitor.errors for visitor in visitors if visitor.errors] == []


@pytest.fixture
def visitor(visit: Visit) -> Visitor:
    return visit()
