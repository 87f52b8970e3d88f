"""Each error has one code and one SQLSTATE, which SQL functions raise and Python finds again."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import psycopg
import pytest

import pgtrickle
from pgtrickle.interfaces.error_reference import error_page, explanation
from pgtrickle.model import errors
from pgtrickle.model.errors import ERRORS, Busy, CommandRefused, PgTrickleError, error_class

SOURCE = Path(pgtrickle.__file__).parent
RAISE = re.compile(r"raise exception((?:[^;']|'(?:[^']|'')*')*);", re.IGNORECASE)
ERRCODE = re.compile(r"errcode = '(\w+)'")
INTERNAL = {"values.sql"}
"""Files whose errors are caught again before a user sees them."""
CAUGHT = "using errcode = 'PT001'"
"""How a function rolls back a part of what it did: it catches this itself."""


def _raises() -> list[tuple[str, str]]:
    """The file and the text of every RAISE EXCEPTION in our functions."""
    return [
        (file.name, found)
        for file in sorted(SOURCE.rglob("functions/*.sql"))
        if file.name not in INTERNAL
        for found in RAISE.findall(file.read_text())
        if CAUGHT not in found
    ]


def test_every_class_is_listed_once_with_a_code_and_an_sqlstate_of_its_own():
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, PgTrickleError)
    }
    assert set(ERRORS) == defined
    for field in ("code", "sqlstate"):
        counts = Counter(getattr(error, field) for error in ERRORS)
        assert [value for value, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_sqlstate_is_one_of_postgresql_or_made_from_the_code(error):
    own = f"T{error.code[4:]}"
    is_known = error.sqlstate in psycopg.errors.__dict__["_sqlcodes"]
    assert error.sqlstate == own or is_known
    assert (error.exit_code in (0, 1, 2, 3, 4, 5), 400 <= error.http_status < 600) == (True, True)


@pytest.mark.parametrize("error", ERRORS[:-1], ids=lambda error: error.code)
def test_an_sqlstate_leads_back_to_its_class(error):
    assert error_class(error.sqlstate) is error


@pytest.mark.parametrize(
    ("sqlstate", "code"),
    [
        ("42703", "PGT-P003"),
        ("40001", "PGT-S004"),
        ("08006", "PGT-C001"),
        ("57014", "PGT-S019"),
        (None, "PGT-S001"),
    ],
)
def test_other_sqlstates_of_postgresql_lead_to_the_nearest_class(sqlstate, code):
    assert error_class(sqlstate).code == code


def test_sql_functions_raise_only_sqlstates_that_have_a_class():
    states = {name: getattr(psycopg.errors, _camel(name), None) for name in _conditions()}
    unknown = {
        name
        for name, condition in states.items()
        if error_class(condition.sqlstate if condition else name) in (CommandRefused, PgTrickleError)
    }
    assert unknown == set()


def test_every_error_of_a_sql_function_says_what_to_do():
    assert [text for _, text in _raises() if "hint =" not in text and "errcode" in text] == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_every_error_has_a_meaning_a_cause_and_a_remedy(error):
    said = explanation(error)
    assert all(part.endswith((".", "…`.")) for part in (said.meaning, said.cause, said.remedy))


def test_the_page_of_errors_is_up_to_date():
    page = SOURCE.parents[1] / "docs" / "ERRORS.md"
    assert page.read_text() == error_page(), "run: make reference"


def test_an_error_prints_its_code_detail_hint_and_excerpt():
    error = Busy(
        "orders is locked",
        hint="run select pgtrickle.undrain()",
        detail="By process 7.",
        excerpt="LINE 1: x\n        ^",
    )
    assert str(error) == ("PGT-S004: orders is locked. By process 7. (run `undrain()`)\nLINE 1: x\n        ^")


def _conditions() -> set[str]:
    return {state for _, text in _raises() for state in ERRCODE.findall(text)}


def _camel(condition: str) -> str:
    return "".join(part.capitalize() for part in condition.split("_"))
