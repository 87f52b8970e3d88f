"""docs/SQL.md says what a new installation holds, and its COMMENTs describe every argument and column."""

from __future__ import annotations

from pathlib import Path

from pgtrickle.interfaces.sql_errors import SqlErrors
from pgtrickle.interfaces.sql_reference import TOPICS, public_objects, sql_page
from pgtrickle.model.errors import StillInUse, UnknownStreamTable
from pgtrickle.model.options import BY_NAME

PAGE = Path(__file__).parents[2] / "docs" / "SQL.md"


def test_the_sql_reference_is_up_to_date(connection):
    assert PAGE.read_text() == sql_page(connection), "run: make reference"


def test_every_argument_and_result_column_is_described(connection):
    missing = [
        f"{each.name}.{part.name}"
        for each in public_objects(connection)
        for part in (*each.arguments, *each.columns)
        if not part.meaning
    ]
    assert missing == []


def test_a_comment_describes_only_what_is_there(connection):
    assert {each.name: each.unknown for each in public_objects(connection) if each.unknown} == {}


def test_options_are_described_in_their_own_table_only(connection):
    # a second text would contradict the first one some day
    objects = {each.name: each for each in public_objects(connection)}
    for name in ("create_stream_table", "alter_stream_table"):
        described = {part.name: part.meaning for part in objects[name].arguments if part.name in BY_NAME}
        assert described == {option: BY_NAME[option].help for option in described}


def test_every_public_object_has_a_heading_of_its_own(connection):
    listed = [name for names in TOPICS.values() for name in names]
    assert sorted(listed) == sorted(each.name for each in public_objects(connection))


def test_errors_of_inner_functions_belong_to_the_function_that_is_called(connection):
    errors = {error.sqlstate: error.error for error in SqlErrors(connection).of("drop_stream_table")}
    assert errors["2BP01"] is StillInUse
    assert errors["TS002"] is UnknownStreamTable


def test_a_function_that_a_hint_names_is_not_called(connection):
    states = {error.sqlstate for error in SqlErrors(connection).of("drop_stream_table")}
    assert "TS003" not in states
