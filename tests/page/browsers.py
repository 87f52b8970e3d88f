"""The Chromium of this machine, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, sync_playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def installed_browser() -> str | None:
    """Where the browser is; None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def open_browser(program: str) -> Iterator[Browser]:
    """A browser without a window, closed afterwards."""
    # the browser of root has no sandbox
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()
