"""Commands, options, functions and settings that the pages name exist, and examples parse."""

from __future__ import annotations

import re
import shlex
from typing import Any

import psycopg
import pytest
import typer

import pgtrickle
from pgtrickle.interfaces.cli import application
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.settings import SETTINGS
from tests.docs.pages import DOCS, PAGES, ROOT, Block, blocks, inline_code


def _commands() -> dict[str, Any]:
    found: dict[str, Any] = typer.main.get_command(application.application()).commands  # type: ignore[attr-defined]
    return found


COMMANDS = _commands()
FOREIGN_OPTIONS = frozenset(
    (
        # pg_dump, pg_restore and pg_dumpall
        *("--clean", "--disable-triggers", "--exclude-table-data", "--globals-only", "--jobs", "--no-owner"),
        # dbt
        *("--args", "--full-refresh"),
    )
)
# messages begin with "pgtrickle is not installed" and the like
VERBS = ("belongs", "is", "may")
# what may stand before a command, and instead of one
ROOT_OPTIONS = ("--version", "--debug", "--install-completion", "--show-completion", "COMMAND")
# these two describe how pgtrickle itself is built and measured, with options of other programs
OF_DEVELOPERS = (ROOT / "CONTRIBUTING.md", DOCS / "BENCHMARKS.md")
FOR_USERS = tuple(page for page in PAGES if page not in OF_DEVELOPERS)
# this one is generated from docstrings, whose examples have a test of their own
OF_PYTHON = DOCS / "PYTHON.md"
EXAMPLES = [block for page in PAGES for block in blocks(page) if page != OF_PYTHON]


def of_language(*languages: str) -> list[Block]:
    return [block for block in EXAMPLES if block.language in languages]


def _shell_words(block: Block) -> list[list[str]]:
    """The commands of a block of shell, each as a list of words, without assignments in front of them."""
    found = []
    text = block.text.replace("\\\n", " ")
    # newlines outside of quotes end a command
    for line in re.findall(r"(?:[^\n\"']|\"[^\"]*\"|'[^']*')+", text):
        line = re.split(r"\s#\s|^#", line)[0]
        for part in re.split(r"\s(?:\||&&|;)\s", line):
            words = shlex.split(part)
            while words and re.match(r"^[A-Z_]+=", words[0]):
                words.pop(0)
            if words:
                found.append(words)
    return found


@pytest.mark.parametrize("block", of_language("sh", "ini"), ids=str)
def test_the_command_line_takes_every_command_that_is_shown(block):
    for words in _calls(block):
        _parse(words)


def _calls(block: Block) -> list[list[str]]:
    if block.language == "ini":
        lines = [line.partition("=")[2] for line in block.text.splitlines() if line.startswith("Exec")]
        calls = [shlex.split(line) for line in lines]
    else:
        calls = _shell_words(block)
    return [words[1:] for words in calls if words[0].rpartition("/")[2] == "pgtrickle"]


def _parse(words: list[str]) -> None:
    if words[0] == "--version":
        return
    command = COMMANDS[words[0]]
    command.make_context(words[0], list(words[1:])).close()


@pytest.mark.parametrize("block", of_language("sh"), ids=str)
def test_make_has_every_target_that_is_shown(block):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {words[1] for words in _shell_words(block) if words[0] == "make"} <= targets


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_in_a_sentence_exist(page):
    known = {name: _options(command) for name, command in COMMANDS.items()}
    all_options = set().union(*known.values()) | FOREIGN_OPTIONS
    for code in inline_code(page):
        words = code.split()
        if words[0] == "pgtrickle" and len(words) > 1 and words[1] not in (*ROOT_OPTIONS, *VERBS):
            assert words[1] in known, code
            assert {word for word in words if word.startswith("--")} <= known[words[1]], code
        elif words[0].startswith("--"):
            assert set(words[0].partition("=")[0].split("/")) <= all_options, code


def _options(command: Any) -> set[str]:
    return {option for each in command.params for option in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_environment_variables_exist(page):
    known = {setting.variable for setting in SETTINGS}
    assert set(re.findall(r"\bPGTRICKLE_[A-Z_]+\b", page.read_text())) <= known


def test_postgresql_parses_every_statement_that_is_shown(admin):
    wrong = []
    for block in of_language("sql"):
        for statement in _statements(block.text):
            # PL/pgSQL parses a statement that it never reaches
            body = f"begin if false then {statement}; end if; end"
            try:
                admin.execute(psycopg.sql.SQL("do {}").format(psycopg.sql.Literal(body)))
            except psycopg.errors.SyntaxError as error:
                wrong.append(f"{block}: {error.diag.message_primary}")
    assert wrong == []


def test_the_queries_for_monitoring_run(app):
    monitoring = [
        statement
        for block in blocks(DOCS / "OPERATIONS.md")
        if block.language == "sql" and "from pgtrickle." in block.text
        for statement in _statements(block.text)
    ]
    assert len(monitoring) >= 3
    for statement in monitoring:
        app.execute(statement)


def _statements(text: str) -> list[str]:
    text = re.sub(r"--[^\n]*", "", re.sub(r"^\\.*$", "", text, flags=re.MULTILINE))
    parts = re.findall(r"(?:[^;']|'[^']*')+", text)
    # transactions are not for PL/pgSQL
    return [part for each in parts if (part := each.strip()) and part.lower() not in ("begin", "commit")]


def test_functions_are_called_as_they_can_be(connection):
    routines = {
        name: (kind, arguments)
        for name, kind, arguments in connection.execute(
            "select p.proname::text, min(p.prokind::text), array_agg(distinct a.name) from pg_proc p"
            " left join lateral unnest(p.proargnames) a(name) on true"
            " where p.pronamespace = any (array['pgtrickle', 'pgtrickle_internal']::regnamespace[])"
            " group by p.proname"
        )
    }
    all_arguments = {argument for _, arguments in routines.values() for argument in arguments}
    macros = "".join(file.read_text() for file in (ROOT / "dbt" / "macros").glob("*.sql"))
    wrong = []
    for page in PAGES:
        text = page.read_text()
        for name in re.findall(r"\bpgtrickle(?:_internal)?\.(\w+)\(", text):
            if name not in routines and not hasattr(pgtrickle, name) and f"{{% macro {name}(" not in macros:
                wrong.append(f"{page}: there is no {name}")
        for how, name in re.findall(r"\b(select|call)\s+pgtrickle\.(\w+)\(", text, re.IGNORECASE):
            if routines[name][0] != {"select": "f", "call": "p"}[how.lower()]:
                wrong.append(f"{page}: {how} {name}")
        wrong += [
            f"{page}: {name} =>" for name in re.findall(r"(\w+) => ", text) if name not in all_arguments
        ]
    assert wrong == []


@pytest.mark.parametrize("block", of_language("python"), ids=str)
def test_python_takes_every_call_that_is_shown(block):
    compile(block.text, str(block), "exec")
    assert {
        name for name in re.findall(r"\btrickle\.(\w+)", block.text) if not hasattr(Trickle, name)
    } == set()
    assert {
        name for name in re.findall(r"\bpgtrickle\.(\w+)", block.text) if not hasattr(pgtrickle, name)
    } == set()
