"""Python has every command of the command line, with the same name and the same options."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import pgtrickle
from pgtrickle.interfaces.cli.application import COMMANDS, application
from pgtrickle.interfaces.definitions import CreateOptions
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model import errors
from pgtrickle.model.options import ON_CREATE, OPTIONS
from pgtrickle.model.settings import SETTINGS

OF_A_METHOD = {
    "create": {"or_replace", "dry_run"},
    "adopt": {"dry_run"},
    "install": {"print_grants", "owner", "source", "schema"},
    "alerts": {"follow"},
    "list": {"all_databases"},
}
"""Options for which Python has a method of its own, such as `create_or_replace` or `adoption_plan`."""
OF_A_TERMINAL = {"json", "yes", "query_file", "file", "once", "watch", "interval", "problems"}
"""Options about how a command reads and prints. A program has the text, and gets the value."""
OF_CONNECT = {"spark_conf", *(setting.name for setting in SETTINGS)}
"""Options about the process, which Python gives once, to `connect`."""
OF_PYTHON = {"run": {"stop", "on_event", "http"}, "validate": {"name"}, "apply": {"definitions"}}
BY_FLAG = {option.cli_flag.partition("/")[0]: option.name for option in OPTIONS}
BY_SQL_NAME = {
    "create_stream_table": "create",
    "create_or_replace_stream_table": "create_or_replace",
    "create_stream_table_if_not_exists": "create_if_not_exists",
    "alter_stream_table": "alter",
    "adopt_materialized_view": "adopt",
    "drop_stream_table": "drop",
    "resume_stream_table": "resume",
    "gate_source": "gate",
    "ungate_source": "ungate",
    "stream_table_to_publication": "publish",
    "drop_stream_table_publication": "unpublish",
    "publication_status": "publications",
    "attach_database": "attach",
    "detach_database": "detach",
    "declare_source": "declare",
    "attached_databases": "attached",
    "register_subscriber": "track",
    "unregister_subscriber": "untrack",
}


@pytest.mark.parametrize("command", [name for name, _ in COMMANDS])
def test_every_command_is_a_method_with_the_same_options(command):
    method = getattr(Trickle, command.replace("-", "_"), None)
    assert method is not None, f"add the method to interfaces/python.py, then run: make reference: {command}"
    taken = set(inspect.signature(method).parameters) - {"self"} - OF_PYTHON.get(command, set())
    assert taken == _options(command)


@pytest.mark.parametrize(("sql_name", "name"), BY_SQL_NAME.items())
def test_what_has_another_name_in_sql_has_that_name_too(sql_name, name):
    assert getattr(Trickle, sql_name) is getattr(Trickle, name)


def test_connect_takes_every_setting_that_is_an_option():
    taken = {"spark_master" if name == "spark" else name for name in _parameters(pgtrickle.connect)}
    assert taken == {"spark_conf", *(setting.name for setting in SETTINGS if setting.is_option)}


def test_all_ways_to_create_take_the_same_options():
    assert list(CreateOptions.__annotations__) == [option.name for option in ON_CREATE]
    assert _parameters(Trickle.create)[:3] == ["self", "name", "query"]
    assert _parameters(Trickle.create)[3:] == list(CreateOptions.__annotations__)


def test_dir_lists_the_interface_and_nothing_else():
    assert dir(pgtrickle) == sorted(pgtrickle.__all__)
    for name in pgtrickle.__all__:
        assert getattr(pgtrickle, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = pgtrickle.nope


def test_every_error_is_exported_and_says_what_it_means():
    found = [value for value in vars(errors).values() if _is_error(value)]
    assert found
    for error in found:
        assert getattr(pgtrickle, error.__name__) is error
        assert error.__doc__


def test_type_checkers_see_what_is_exported():
    tree = ast.parse(Path(pgtrickle.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname
    }
    expected = {name: home for name, home in pgtrickle._HOMES.items() if home != errors.__name__}
    assert seen == expected


def test_importing_the_package_imports_nothing_slow():
    script = (
        "import sys, pgtrickle; dir(pgtrickle); pgtrickle.Busy;"
        "print([name for name in ('psycopg', 'pandas', 'rich', 'typer', 'sqlglot', 'pyspark', 'pyarrow')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_connecting_needs_no_spark():
    script = "import sys, pgtrickle; pgtrickle.connect; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def _parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def _options(command: str) -> set[str]:
    """The arguments and options of a command, by the names that they have in Python."""
    commands = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    flags = (next((opt for opt in item.opts if opt in BY_FLAG), None) for item in commands[command].params)
    names = zip(flags, (item.name for item in commands[command].params), strict=True)
    found = {BY_FLAG[flag] if flag else name for flag, name in names}
    # a stream table has options that are named like settings, such as refresh_timeout
    is_about_one = command in ("create", "adopt", "alter", "validate")
    of_tables = {option.name for option in OPTIONS} if is_about_one else set()
    return found - OF_A_TERMINAL - OF_A_METHOD.get(command, set()) - (OF_CONNECT - of_tables)


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, errors.PgTrickleError)
