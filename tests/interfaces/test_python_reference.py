"""docs/PYTHON.md says what the docstrings say, and its examples run as they are written."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import pgtrickle
from pgtrickle.interfaces.python_reference import TOPICS, python_page
from tests.fixtures.databases import TRICKLE

PAGE = Path(__file__).parents[2] / "docs" / "PYTHON.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
UNLISTED = {"engine"}
"""The way to the inside, for our own programs."""


def test_the_python_reference_is_up_to_date():
    assert PAGE.read_text() == python_page(), "run: make reference"


def test_every_public_method_has_its_place_and_says_what_it_does():
    listed = {name for names in TOPICS.values() for name in names}
    public = {name for name in dir(pgtrickle.Trickle) if not name.startswith("_")} - UNLISTED
    methods = [getattr(pgtrickle.Trickle, name) for name in public]
    # a method that has the name of its SQL function too is listed once
    assert {method.__name__ for method in methods} <= listed
    assert all(method.__doc__ for method in methods)


@pytest.mark.usefixtures("shared_spark")
def test_the_examples_run_as_they_are_written(database, source, admin, monkeypatch):
    source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)])
    admin.execute("grant create on schema public to trickle; grant insert on orders to trickle")
    admin.execute("create materialized view by_region as select distinct region from orders")
    admin.execute("alter materialized view by_region owner to trickle")
    monkeypatch.setenv("PGTRICKLE_DSN", database.dsn(TRICKLE))
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    names: dict[str, object] = {}
    test = doctest.DocTestParser().get_doctest(examples, names, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    try:
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    finally:
        if isinstance(trickle := test.globs.get("trickle"), pgtrickle.Trickle):
            trickle.close()
    assert result.attempted > 20
    assert result.failed == 0, "".join(report)
