"""Settings and options are written once, and every interface takes exactly what the tables say."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer.main

import pgtrickle
from pgtrickle.interfaces.cli.application import application
from pgtrickle.interfaces.ddl import options as ddl
from pgtrickle.interfaces.python import Trickle
from pgtrickle.interfaces.reference import configuration_page
from pgtrickle.model.errors import CommandRefused
from pgtrickle.model.options import ON_ALTER, ON_CREATE
from pgtrickle.model.settings import SETTINGS, Settings, read_settings
from pgtrickle.plan.limits import QueryLimits
from tests.fixtures.databases import TRICKLE

SOURCE = Path(pgtrickle.__file__).parent
CREATING = (
    "create_stream_table",
    "create_stream_table_if_not_exists",
    "create_or_replace_stream_table",
    "create_stream_table_and_wait",
)


def test_every_setting_is_a_field_with_the_same_default():
    assert {field.name: field.default for field in fields(Settings)} == {
        setting.name: setting.default for setting in SETTINGS
    }


def test_what_is_given_wins_over_the_environment_and_that_over_the_defaults():
    environment = {"PGTRICKLE_MAX_CONNECTIONS": "7", "PGTRICKLE_WORKER_POOL_SIZE": ""}
    found = read_settings(environment, memory_limit="64MB", pooler=None)
    assert (found.max_connections, found.memory_limit) == (7, 64 << 20)
    assert found.worker_pool_size == Settings().worker_pool_size
    assert read_settings(environment, max_connections=9).max_connections == 9


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("PGTRICKLE_MAX_CONNECTIONS", "many"),
        ("PGTRICKLE_WORKER_POOL_SIZE", "65"),
        ("PGTRICKLE_MAX_CONSECUTIVE_ERRORS", "0"),
        ("PGTRICKLE_REFRESH_TIMEOUT", "-1"),
        ("PGTRICKLE_POOLER", "perhaps"),
        ("PGTRICKLE_PATH", "wide"),
        ("PGTRICKLE_MEMORY_LIMIT", "none"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_what_it_must_be(variable, text):
    with pytest.raises(CommandRefused, match=variable.removeprefix("PGTRICKLE_").lower()) as refusal:
        read_settings({variable: text})
    assert (refusal.value.hint or "").startswith("it must be ")


def test_settings_never_show_a_password():
    assert "secret" not in repr(read_settings({}, dsn="postgresql://me:secret@host/db"))


def test_only_the_table_reads_variables_of_ours():
    readers = [
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(r"[\"']PGTRICKLE_", file.read_text()) and file.name != "setting.py"
    ]
    assert readers == []


def test_the_command_line_has_every_setting():
    command = typer.main.get_command(application())
    found = {
        option: parameter.envvar
        for sub in command.commands.values()  # type: ignore[attr-defined]
        for parameter in sub.params
        for option in parameter.opts
        if parameter.envvar
    }
    assert found == {setting.option: setting.variable for setting in SETTINGS if setting.is_option}


def test_the_configuration_page_is_up_to_date():
    page = SOURCE.parents[1] / "docs" / "CONFIGURATION.md"
    assert page.read_text() == configuration_page(), "run: make reference"


@pytest.mark.parametrize("function", CREATING)
def test_the_sql_functions_that_create_take_the_options_of_the_table(connection, function):
    expected = {
        option.name: str(option.default).lower() if isinstance(option.default, bool) else option.default
        for option in ON_CREATE
    }
    found = _sql_options(connection, function)
    # the procedure also takes how long to wait
    found.pop("timeout", None)
    assert found == expected


def test_the_sql_function_that_alters_takes_the_options_of_the_table(connection):
    expected = {"query": None, **{option.name: None for option in ON_ALTER}}
    assert _sql_options(connection, "alter_stream_table") == expected


def test_python_takes_the_options_of_the_table():
    creating = inspect.signature(Trickle.create_stream_table).parameters
    given = {name: value.default for name, value in creating.items() if name not in ("self", "name", "query")}
    assert given == {option.name: option.default for option in ON_CREATE}
    altering = inspect.signature(Trickle.alter_stream_table).parameters
    assert set(altering) - {"self", "name", "query"} == {option.name for option in ON_ALTER}


def test_statements_and_the_command_line_take_the_options_of_the_table():
    assert list(ddl.CREATE) == [option.name for option in ON_CREATE]
    assert list(ddl.ALTER) == [option.name for option in ON_ALTER]
    commands = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    for name, options in (("create", ON_CREATE), ("alter", ON_ALTER)):
        flags = {option for parameter in commands[name].params for option in parameter.opts}
        assert {option.cli_flag.partition("/")[0] for option in options} <= flags


def _sql_options(connection, function: str) -> dict[str, str | None]:
    """The arguments of a function after its name and query, and their defaults; None for null."""
    (text,) = connection.execute(
        "select pg_get_function_arguments(oid) from pg_proc"
        " where proname = %s and pronamespace = 'pgtrickle'::regnamespace",
        (function,),
    ).fetchone()
    found: dict[str, str | None] = {}
    for argument in text.replace("IN ", "").split(", "):
        name, _, default = argument.partition(" DEFAULT ")
        value = re.sub(r"'(.*)'::.*", r"\1", default)
        found[name.split()[0]] = None if value.startswith("NULL") else value
    return {name: value for name, value in found.items() if name != "name" and (name, value) != ("query", "")}


def test_the_limits_of_queries_reach_the_engine(database, monkeypatch):
    monkeypatch.setenv("PGTRICKLE_MAX_RELATIONS", "7")
    with pgtrickle.connect(database.dsn(TRICKLE)) as trickle:
        assert trickle.engine.query_limits == QueryLimits(max_relations=7)
