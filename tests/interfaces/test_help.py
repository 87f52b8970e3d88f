"""Help fits into 80 columns, cuts nothing, shows defaults, and names every environment variable."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pgtrickle.interfaces.cli.application import COMMANDS, application, run
from pgtrickle.interfaces.cli_reference import cli_page
from pgtrickle.model.options import ON_CREATE
from pgtrickle.model.settings import SETTINGS
from tests.interfaces.test_tables import SOURCE

NAMES = [name for name, _ in COMMANDS]


@pytest.fixture
def help_of(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")

    def help_text(*command: str) -> str:
        assert run([*command, "--help"] if command else []) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return str(shown.out)

    return help_text


@pytest.mark.parametrize("command", NAMES)
def test_help_fits_into_80_columns_and_cuts_no_name(help_of, command):
    text = help_of(command)
    assert max(map(len, text.splitlines())) <= 80
    assert "…|" not in text
    options = [
        option
        for parameter in _commands()[command].params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    ]
    assert [option for option in options if option not in text] == []


def test_the_program_without_arguments_shows_its_help(help_of):
    text = help_of()
    assert text.startswith("Usage: pgtrickle")
    assert max(map(len, text.splitlines())) <= 80
    lines = [line.split(maxsplit=1) for line in text.partition("Commands:\n")[2].splitlines()]
    described = {line[0]: line[1] for line in lines if len(line) == 2}
    assert [name for name in NAMES if described[name].endswith("...")] == []


def test_creation_shows_the_default_of_every_option(help_of):
    text = " ".join(help_of("create").split()).replace("- ", "-")
    for option in ON_CREATE:
        shown = option.shown_default or str(option.default)
        if isinstance(option.default, bool):
            shown = option.cli_flag.split("/")[0 if option.default else 1].removeprefix("--")
        assert f"[default: ({shown})]" in text, option.name
    assert "[default:" not in help_of("alter").partition("--dsn")[0]


def test_every_environment_variable_is_in_some_help(help_of):
    text = "".join((help_of(), *map(help_of, NAMES)))
    assert [setting.variable for setting in SETTINGS if setting.variable not in text] == []


def test_the_page_of_the_command_line_is_up_to_date():
    page = SOURCE.parents[1] / "docs" / "CLI.md"
    assert page.read_text() == cli_page(), "run: make reference"


def _commands():
    import typer

    return typer.main.get_command(application()).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_list_of_commands_imports_no_database_driver(option):
    script = (
        "import sys; from pgtrickle.interfaces.cli.application import run; run([sys.argv[1]]);"
        "slow = ('psycopg', 'sqlglot', 'pyspark', 'pandas');"
        "sys.exit(repr([name for name in slow if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script, option], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


def test_a_command_with_json_imports_neither_screens_nor_converters():
    script = (
        "import sys; from pgtrickle.interfaces.cli.application import run;"
        "run(['status', '--json', '--dsn', 'postgresql://127.0.0.1:1/shop']);"
        "slow = ('rich', 'pydantic', 'sqlglot', 'pyspark', 'pandas');"
        "sys.exit(repr([name for name in slow if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_list_of_commands_says_what_the_commands_say(help_of):
    shown = " ".join(help_of().split())
    for name, command in _commands().items():
        summary = " ".join(command.help.partition(".")[0].split())
        assert f"{name} {summary}" in shown
