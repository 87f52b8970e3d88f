"""The package has the options of the product, its version, and pages that describe it."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import yaml

import pgtrickle
from pgtrickle.model.options import ON_ALTER, ON_CREATE

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dbt"
PAGE = ROOT / "docs" / "DBT.md"
COLUMNS = {"tier": "refresh_tier"}
"""Columns of the catalog that are not called like their options."""


def options() -> dict[str, Any]:
    """The table of options in the package, with their defaults."""
    text = (PACKAGE / "macros" / "options.sql").read_text()
    found = re.search(r"return\((\{.*?\})\)", text, re.DOTALL)
    assert found is not None
    table: dict[str, Any] = literal_eval(found[1].replace("true", "True").replace("false", "False"))
    return table


def test_the_package_has_the_options_and_defaults_of_a_stream_table():
    assert options() == {
        option.name: option.shown_default if option.default is None else option.default
        for option in ON_CREATE
    }
    assert {option.name for option in ON_ALTER} - options().keys() == {"status"}


def test_a_change_of_each_option_is_noticed():
    state = (PACKAGE / "macros" / "state.sql").read_text()
    definition = state[state.index("'definition'") :]
    assert [
        name for name in options() if not re.search(rf"[si]\.{COLUMNS.get(name, name)}\b", definition)
    ] == []


def test_the_page_describes_each_option():
    assert [
        name for name in [*options(), "status", "wait_timeout"] if f"| `{name}` |" not in PAGE.read_text()
    ] == []


def test_the_package_has_the_version_of_the_product():
    project = yaml.safe_load((PACKAGE / "dbt_project.yml").read_text())
    assert (project["name"], project["version"]) == ("pgtrickle", pgtrickle.__version__)


def test_the_requirements_of_dbt_name_no_registry():
    pinned = (ROOT / "scripts" / "dbt-requirements.txt").read_text()
    assert re.search(r"^dbt-postgres==", pinned, re.MULTILINE)
    assert "://" not in pinned
