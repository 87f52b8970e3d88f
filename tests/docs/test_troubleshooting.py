"""The messages on the page about trouble are those that the code really has."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "TROUBLESHOOTING.md"
# of PostgreSQL, not ours
FOREIGN = ("canceling statement due to statement timeout", "division by zero")
_ROW = re.compile(r"^\| (?:an error of PostgreSQL, such as )?`([^`]*\s[^`]*)`", re.MULTILINE)
_SPLIT = re.compile(r"""(["'])\s*\n\s*(?:\|\| )?f?["']""")
_VARYING = re.compile(r"\{[^{}\n]*\}|%(?:\d+\$)?[sIL]|%")


def _source() -> str:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.sql")]
    text = "\n".join(file.read_text() for file in files)
    return _VARYING.sub("…", _SPLIT.sub("", text))


@pytest.fixture(scope="module")
def source() -> str:
    return _source()


@pytest.mark.parametrize("message", _ROW.findall(PAGE.read_text()))
def test_a_message_in_the_tables_is_one_of_ours(source, message):
    assert message in source or message in FOREIGN
