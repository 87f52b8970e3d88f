"""Shell completion: commands, options and names from the database, and silence when it is away."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

PROGRAM = f"{sys.executable} -m pgtrickle.interfaces.cli"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key)")


def _complete(*words: str, dsn: str = "", shell: str = "bash") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PGTRICKLE_DSN": dsn,
        "_PGTRICKLE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": " ".join(("pgtrickle", *words)),
        "COMP_CWORD": str(len(words)),
    }
    if shell != "bash":
        environment["_TYPER_COMPLETE_ARGS"] = environment.pop("COMP_WORDS")
        environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
        del environment["COMP_CWORD"]
    return subprocess.run(PROGRAM.split(), env=environment, capture_output=True, text=True, check=False)


def _found(*words: str, dsn: str = "", shell: str = "bash") -> list[str]:
    done = _complete(*words, dsn=dsn, shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def test_commands_and_options_are_completed():
    assert _found("st") == ["status"]
    assert "doctor" in _found("")
    assert _found("status", "--wa") == ["--watch"]
    assert _found("top", "--sort", "st") == ["staleness"]
    assert _found("create", "sales", "--mode", "diff") == ["DIFFERENTIAL"]


@pytest.mark.usefixtures("orders")
@pytest.mark.light
def test_names_of_stream_tables_and_sources_are_completed(app, dsn, admin):
    admin.execute("create schema hidden authorization app; grant usage on schema hidden to trickle")
    for name in ("sales", "sales_by_day", "hidden.away", '"Odd Name"'):
        app.execute("select pgtrickle.create_stream_table(%s, 'select id from orders')", (name,))
    assert _found("status", "sal", dsn=dsn) == ["sales", "sales_by_day"]
    assert _found("drop", "public.sales_", dsn=dsn) == ["public.sales_by_day"]
    assert _found("status", "hid", dsn=dsn) == ["hidden.away"]
    assert _found("status", "aw", dsn=dsn) == []
    assert _found("gate", "or", dsn=dsn) == ["orders"]
    assert _found("explain", "'\"Odd", dsn=dsn) == ["'\"Odd Name\"'"]
    assert _found("status", '"Odd', dsn=dsn, shell="fish") == []
    assert "sales" in _found("status", "sal", dsn=dsn, shell="fish")


def test_the_dsn_on_the_command_line_counts(dsn, app, orders):
    app.execute("select pgtrickle.create_stream_table('kept', 'select id from orders')")
    assert orders.name == "orders"
    assert _found("status", "--dsn", dsn, "ke", dsn="postgresql://x@127.0.0.1:1/x") == ["kept"]


def test_a_database_that_is_away_completes_nothing_and_says_nothing():
    assert _found("status", "sal", dsn="postgresql://nobody@127.0.0.1:1/nothing") == []
    assert _found("status", "sal", dsn="not an address") == []


def test_a_database_that_does_not_answer_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        # it accepts the connection and never says a word
        assert _found("status", "sal", dsn=f"postgresql://x@127.0.0.1:{mute.getsockname()[1]}/x") == []


def test_a_database_without_pgtrickle_completes_nothing(server):
    assert _found("status", "sal", dsn=server.dsn()) == []


def test_bash_calls_what_the_program_prints(dsn, app, orders):
    app.execute("select pgtrickle.create_stream_table('kept', 'select id from orders')")
    environment = {**os.environ, "PGTRICKLE_DSN": dsn}
    script = subprocess.run(
        PROGRAM.split(),
        env={**environment, "_PGTRICKLE_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "complete -o default -F _pgtrickle_completion pgtrickle" in script
    calls = "pgtrickle() { " + PROGRAM + ' "$@"; }; export -f pgtrickle; '
    # bash runs the program by its name, through env
    calling = script.replace("$1 )", f"{PROGRAM} )")
    tried = (
        f"{calls}{calling}\nCOMP_WORDS=(pgtrickle status ke); COMP_CWORD=2; _pgtrickle_completion pgtrickle\n"
    )
    done = subprocess.run(
        ["bash", "-c", tried + 'echo "${COMPREPLY[@]}"'],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "kept\n"
    assert orders.name == "orders"


def test_completing_a_name_imports_nothing_slow(dsn):
    script = (
        "import atexit, sys; atexit.register(lambda: sys.stderr.write(repr([name for name in"
        " ('sqlglot', 'pyspark', 'pyarrow', 'pandas', 'pgtrickle.interfaces.cli.run')"
        " if name in sys.modules])));"
        "sys.argv = ['pgtrickle']; from pgtrickle.interfaces.cli import main; main()"
    )
    environment = {
        **os.environ,
        "PGTRICKLE_DSN": dsn,
        "_PGTRICKLE_COMPLETE": "complete_bash",
        "COMP_WORDS": "pgtrickle status sal",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]"
