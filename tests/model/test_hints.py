"""A hint is written once, as SQL, and shown in the language of the interface."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import pgtrickle
from pgtrickle.interfaces.cli.application import COMMANDS
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.hints import STEPS, Interface, render
from pgtrickle.model.settings import SETTINGS
from tests.catalog.test_public_objects import PUBLIC

SOURCE = Path(pgtrickle.__file__).parent


@pytest.mark.parametrize(
    ("sql", "cli", "python"),
    [
        ("use cascade => true", "use --cascade", "use cascade=True"),
        ("use initialize => false", "use --no-initialize", "use initialize=False"),
        ("set refresh_mode => 'FULL'", "set --mode FULL", "set refresh_mode='FULL'"),
        ("select * from pgtrickle.repair() does", "`pgtrickle repair` does", "`repair()` does"),
        (
            "run select pgtrickle.drop_stream_table('a.\"B c\"', cascade => true)",
            "run `pgtrickle drop 'a.\"B c\"' --cascade`",
            "run `drop('a.\"B c\"', cascade=True)`",
        ),
        (
            "pgtrickle.resume_stream_table(name)",
            "`pgtrickle resume NAME`",
            "`resume(name)`",
        ),
        ("run `pgtrickle install`", "run `pgtrickle install`", "run `install()`"),
        (
            "`pgtrickle verify --timeout 0` has no limit",
            "`pgtrickle verify --timeout 0` has no limit",
            "`verify(timeout=0)` has no limit",
        ),
        (
            "raise PGTRICKLE_MAX_CONNECTIONS",
            "raise --max-connections (PGTRICKLE_MAX_CONNECTIONS)",
            "raise max_connections",
        ),
        ("raise PGTRICKLE_MAX_DEPTH", "raise PGTRICKLE_MAX_DEPTH", "raise PGTRICKLE_MAX_DEPTH"),
        ("pgtrickle.list_sources('a')", "pgtrickle.list_sources('a')", "pgtrickle.list_sources('a')"),
        ("grant select on a to b", "grant select on a to b", "grant select on a to b"),
    ],
)
def test_a_hint_speaks_the_language_of_the_interface(sql, cli, python):
    assert [render(sql, interface) for interface in Interface] == [sql, cli, python]


def test_every_step_exists_in_every_interface():
    commands = {name for name, _ in COMMANDS}
    assert {step.function for step in STEPS if step.function} <= PUBLIC["function"]
    assert {step.command.partition(" ")[0] for step in STEPS} <= commands


def test_every_step_is_a_method_in_python():
    methods = {name for name, _ in inspect.getmembers(Trickle, inspect.isfunction)}
    assert {step.method for step in STEPS} <= methods


def test_hints_name_settings_that_exist():
    known = {setting.variable for setting in SETTINGS}
    named = {variable for text in _texts() for variable in re.findall(r"PGTRICKLE_[A-Z_]+", text)}
    assert named <= known


def test_only_the_command_line_writes_flags_into_hints():
    """Hints are rendered, so that Python and SQL never advise a flag."""
    flags = re.compile(r"(?:hint|HINT)\s*=\s*f?(?:\"[^\"]*\"|'[^']*')")
    wrong = [
        f"{file.name}: {hint}"
        for file in sorted(SOURCE.rglob("*"))
        if file.suffix in (".py", ".sql") and "interfaces" not in file.parts
        for hint in flags.findall(file.read_text())
        if re.search(r"(?<!`pgtrickle verify )--[a-z]", hint)
    ]
    assert wrong == []


def _texts() -> list[str]:
    files = [file for file in SOURCE.rglob("*.py") if "interfaces" not in file.parts]
    return [file.read_text() for file in files if file.name not in ("settings.py", "hints.py")]
