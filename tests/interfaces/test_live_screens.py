"""The live screens on a real terminal: keys, sizes, and a database that goes away and comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psycopg
import pytest

from pgtrickle.interfaces.cli.keyboard import keys_of
from tests.fixtures.terminals import on_terminal
from tests.fixtures.waiting import eventually, quickest

CREATE = "select pgtrickle.create_stream_table(%s, 'select id from orders')"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key)")


@pytest.mark.usefixtures("orders")
@pytest.mark.slow
def test_top_fits_into_80_columns_and_answers_to_keys(dsn, app):
    for number in range(30):
        app.execute(CREATE, (f"kept_{number:02}_with_a_long_name_that_would_not_fit",))
    with on_terminal("top", environment={"PGTRICKLE_DSN": dsn}) as terminal:
        frame = terminal.shows("30 stream tables", "30 initializing", "1–17 of 30 by problems")
        assert max(map(len, frame.split("\n"))) <= 80
        terminal.press(b"\x1b[6~")
        terminal.shows("14–30 of 30")
        terminal.press(b"s")
        terminal.shows("by name")
        terminal.press(b"/_07\r")
        terminal.shows("1–1 of 1", "filter _07", "kept_07")
        terminal.press(b"q")
        assert terminal.ends() == 0


@pytest.mark.usefixtures("orders")
@pytest.mark.slow
def test_a_thousand_stream_tables_do_not_slow_the_keys(dsn, admin, app):
    app.execute(CREATE, ("kept",))
    # their tables need not exist to be shown
    admin.execute(
        "insert into pgtrickle.pgt_stream_tables (pgt_relid, pgt_schema, pgt_name, pgt_owner, defining_query,"
        " refresh_mode, settings, match_columns) select 1000000 + n, 'public', 'many_' || n, pgt_owner,"
        " 'select', 'AUTO', '{}', '{}' from generate_series(1, 999) n, pgtrickle.pgt_stream_tables"
    )
    with on_terminal("top", environment={"PGTRICKLE_DSN": dsn}, columns=120, rows=50) as terminal:
        terminal.shows("1,000 stream tables", "of 1,000 by problems")

        def go_to_the_end_and_back() -> None:
            terminal.press(b"\x1b[F")
            terminal.shows("958–1000 of 1,000")
            terminal.press(b"\x1b[H")
            terminal.shows("1–43 of 1,000")

        assert quickest(go_to_the_end_and_back) < 2
        terminal.press(b"q")
        assert terminal.ends() == 0


@pytest.mark.own_server
@pytest.mark.slow
@pytest.mark.parametrize("command", [("top",), ("status", "--watch", "--interval", "0.2")])
def test_the_screen_goes_on_when_the_database_is_back(own_server, command):
    from pgtrickle.commands.install import install

    dsn = own_server.dsn()
    install(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table orders (id int primary key)")
        connection.execute(CREATE, ("kept",))
    with on_terminal(*command, environment={"PGTRICKLE_DSN": dsn}, columns=160) as terminal:
        terminal.shows("public.kept")
        own_server.stop()
        terminal.shows("away for", "public.kept")
        own_server.start()
        terminal.until(lambda frame: "public.kept" in frame and "away for" not in frame, "back again")
        terminal.press(b"q")
        assert terminal.ends() == 0


@pytest.mark.usefixtures("orders")
@pytest.mark.slow
def test_ctrl_c_ends_the_screen_without_an_error(dsn, app):
    app.execute(CREATE, ("kept",))
    with on_terminal("top", environment={"PGTRICKLE_DSN": dsn}) as terminal:
        terminal.shows("public.kept")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ends() == 0
        assert "stopped" not in terminal.text()


@pytest.mark.slow
def test_a_wrong_address_is_an_error_and_no_screen():
    wrong = {"PGTRICKLE_DSN": "postgresql://nobody@127.0.0.1:1/nothing"}
    with on_terminal("top", environment=wrong, columns=200) as terminal:
        assert terminal.ends() == 3
        assert "error PGT-C001" in terminal.text()


@pytest.mark.usefixtures("orders")
@pytest.mark.slow
def test_watching_without_a_terminal_prints_a_line_of_json_each_time(dsn, app):
    app.execute(CREATE, ("kept",))
    command = [sys.executable, "-m", "pgtrickle.interfaces.cli", "status", "-w", "-i", "0.1", "--json"]
    process = subprocess.Popen(
        command, env={**os.environ, "PGTRICKLE_DSN": dsn}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        eventually(lambda: process.poll() is not None)
    finally:
        process.kill()
        process.communicate()
    assert [table["name"] for line in lines for table in json.loads(line)] == ["public.kept"] * 2
    assert process.returncode == 0


def test_what_a_terminal_sends_becomes_keys():
    assert keys_of(b"\x1b[A\x1b[Bq") == ["up", "down", "q"]
    assert keys_of(b"\x1b") == ["escape"]
    assert keys_of("/Größe\r".encode()) == ["/", "G", "r", "ö", "ß", "e", "enter"]
    assert keys_of(b"a\x7fb") == ["a", "backspace", "b"]
    assert keys_of(b"\x1b[99;99R") == []
