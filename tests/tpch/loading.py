"""The tables of TPC-H, filled with what its generator makes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, cast

import psycopg
from psycopg import sql

TABLES: Final = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_CHUNK: Final = 1 << 20


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """The eight empty tables."""
    connection.execute(cast(Any, (Path(__file__).parent / "schema.sql").read_text()))


def fill_tables(connection: psycopg.Connection[Any], scale: float) -> None:
    """All rows of that scale: 1 is six million lineitems, and a gigabyte of files while it loads."""
    with tempfile.TemporaryDirectory(prefix="pgtrickle-tpch-") as directory:
        # one run for all tables: the generator spends a second on its vocabulary each time
        command = [_generator(), "csv", "--quiet", f"--scale-factor={scale}", f"--output-dir={directory}"]
        subprocess.run(command, check=True)
        for table in TABLES:
            _copy(connection, table, Path(directory) / f"{table}.csv")


def _copy(connection: psycopg.Connection[Any], table: str, rows: Path) -> None:
    into = sql.SQL("copy {} from stdin (format csv, header)").format(sql.Identifier(table))
    with connection.cursor() as cursor, cursor.copy(into) as copy, rows.open("rb") as file:
        while chunk := file.read(_CHUNK):
            copy.write(chunk)


def _generator() -> str:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    assert found, "tpchgen-cli is missing: make setup installs it"
    return found
