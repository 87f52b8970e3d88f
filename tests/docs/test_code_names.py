"""Files of the code that a page names exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, ROOT, inline_code

_FILE = re.compile(r"[\w/.-]*\w\.(?:py|sql)|(?:tests|scripts|bench|src)/[\w/]+|[a-z_]+/[a-z_/]+")
_FOLDERS = ("src", "tests", "scripts", "bench", "docs", "packaging", "dbt")
# made by a command
_MADE = ("bench/results",)


@pytest.fixture(scope="module")
def files() -> list[str]:
    return [f"/{file.relative_to(ROOT)}" for folder in _FOLDERS for file in (ROOT / folder).rglob("*")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_named_file_exists(page, files):
    named = {code.rstrip("/") for code in inline_code(page) if _FILE.fullmatch(code)}
    missing = {
        name
        for name in named
        if name not in (*_FOLDERS, *_MADE) and not any(file.endswith(f"/{name}") for file in files)
    }
    assert missing == set()
