"""The first stream table of the README works word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgtrickle.embedded import Server
from pgtrickle.pipeline.session import Spark
from pgtrickle.refresh.engine import Engine
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

README = Path(__file__).parents[2] / "README.md"
TABLES = """
create table customers(id int primary key, region text);
create table orders(id int primary key, customer_id int, amount numeric);
insert into customers values (1, 'north'), (2, 'south');
insert into orders values (1, 1, 10), (2, 1, 20), (3, 2, 5);
"""


def block(language: str) -> str:
    """The first block of code in a language, in the section of the first stream table."""
    section = README.read_text().split("## Your first stream table\n")[1].split("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found, f"no {language} block"
    return found[1]


@pytest.fixture
def environment(own_server: Server, tmp_path: Path) -> dict[str, str]:
    """A shell in which `pgtrickle` is on the PATH and the server is where the README expects it."""
    script = tmp_path / "pgtrickle"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pgtrickle.interfaces.cli "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PGPORT": str(own_server.port)}


@pytest.mark.every_postgres
def test_the_first_stream_table_of_the_readme(
    own_server: Server, environment: dict[str, str], spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(own_server.dsn(), autocommit=True) as admin:
        admin.execute("create database shop")
    with psycopg.connect(own_server.dsn("shop"), autocommit=True) as admin:
        admin.execute(TABLES)
        admin.execute(block("sql"))
        *commands, last = block("sh").splitlines()
        assert last == "pgtrickle run"
        shell = subprocess.run(
            ["sh", "-e", "-c", "\n".join(commands)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert shell.returncode == 0, shell.stderr
        monkeypatch.setenv("PGPORT", environment["PGPORT"])
        dsn = commands[0].removeprefix("export PGTRICKLE_DSN=")
        engine = Engine(dsn, lambda: spark, max_connections=8)
        try:
            with running(engine):
                eventually(lambda: bool(rows(admin)))
                assert rows(admin) == [("north", 2, 30), ("south", 1, 5)]
                admin.execute("insert into orders values (4, 2, 7)")
                eventually(lambda: rows(admin) == [("north", 2, 30), ("south", 2, 12)])
        finally:
            engine._spark = None
            engine.close()
        gate = subprocess.run(
            ["sh", "-c", f"{commands[0]}\npgtrickle gate orders\npgtrickle install --print-grants trickle"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (gate.returncode, gate.stderr) == (0, "")
        assert gate.stdout.endswith("-- no grant is missing\n")


def rows(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    return connection.execute("select region, orders, amount from sales_by_region order by 1").fetchall()
