"""A dbt project that uses the package, run by a pinned dbt in its own environment, beside a sidecar."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgtrickle.refresh.engine import Engine
from tests.fixtures.bags import difference
from tests.fixtures.databases import APP, Database
from tests.fixtures.sidecars import Sidecar, running
from tests.fixtures.waiting import eventually

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-dbt" / "bin" / "python"
PACKAGE = ROOT / "dbt"

SOURCES = """
create table orders (id int primary key, customer_id int, placed date, amount numeric, status text);
create table customers (id int primary key, name text, region text);
insert into customers values (1, 'ada', 'north'), (2, 'grace', 'south'), (3, 'edsger', 'north');
insert into orders select n, 1 + n % 3, date '2025-01-01' + n % 5, n * 1.5,
    case n % 7 when 0 then 'void' else 'paid' end
from generate_series(1, 60) n;
grant select, trigger on orders, customers to trickle;
"""
WRITES = """
insert into orders values (1001, 1, '2025-02-01', 500, 'paid'), (1002, 2, '2025-01-02', 7, 'void');
update orders set amount = amount + 1 where id % 5 = 0;
delete from orders where id between 20 and 25;
update customers set region = 'west' where id = 2;
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run of dbt: the message of each node by its name, and what dbt printed."""

    is_success: bool
    said: str
    error: str
    messages: dict[str, str]
    statuses: dict[str, str]
    ages: dict[str, float | None]

    def succeeds(self) -> Run:
        assert self.is_success, self.said + self.error
        return self


class Dbt:
    """One process that runs dbt again and again."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(PYTHON), str(Path(__file__).with_name("driver.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: list[str], environment: dict[str, str]) -> Run:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": arguments, "environment": environment}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        results = answer["results"]
        return Run(
            answer["success"],
            answer["said"],
            answer["error"],
            {result["name"]: result["message"] for result in results},
            {result["name"]: result["status"] for result in results},
            {result["name"]: result["age"] for result in results},
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@dataclass(slots=True)
class Project:
    """A copy of the project of the tests, on the database of a test."""

    dbt: Dbt
    directory: Path
    database: Database
    app: psycopg.Connection
    port: int

    def run(self, *arguments: str) -> Run:
        """Run a command of dbt."""
        where = ["--project-dir", str(self.directory), "--profiles-dir", str(self.directory)]
        environment = {
            "SHOP_PORT": str(self.port),
            "SHOP_DATABASE": self.database.name,
            "SHOP_USER": APP,
            "SHOP_PASSWORD": self.database.server.password,
            "PGTRICKLE_PACKAGE": str(PACKAGE),
            "DO_NOT_TRACK": "1",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "0",
            "DBT_USE_COLORS": "0",
        }
        return self.dbt.run([*arguments, *where], environment)

    def write(self, model: str, text: str) -> None:
        (self.directory / "models" / f"{model}.sql").write_text(text)

    def edit(self, model: str, old: str, new: str) -> None:
        path = self.directory / "models" / f"{model}.sql"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def remove(self, model: str) -> None:
        (self.directory / "models" / f"{model}.sql").unlink()

    def configure(self, model: str, **options: object) -> None:
        """Set options in the config of a model, in place of those it had."""
        path = self.directory / "models" / f"{model}.sql"
        body = "\n".join(line for line in path.read_text().splitlines() if "config(" not in line)
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        path.write_text(f"{{{{ config({given}) }}}}\n{body}\n" if options else body + "\n")

    def oids(self) -> dict[str, int]:
        """The OID of the table of each stream table, by its name."""
        return {name: oid for name, oid, _, _ in self._stream_tables()}

    def definitions(self) -> dict[str, str]:
        """What changes whenever somebody creates or alters a stream table, by its name."""
        return {name: proof for name, _, proof, _ in self._stream_tables()}

    def differences(self) -> list[str]:
        """Where stream tables do not equal PostgreSQL's own answers to their queries."""
        return [
            f"{name}: {row}"
            for name, _, _, query in self._stream_tables()
            for row in difference(self.app, f"select * from {name}", query)
        ]

    def follows(self, *statements: str) -> None:
        """Run the statements as the application, then wait until every stream table equals its query."""
        for statement in statements:
            self.app.execute(statement)
        eventually(lambda: self.differences() == [])

    def _stream_tables(self) -> list[tuple[str, int, str, str]]:
        found = self.app.execute(
            "select format('%I.%I', i.pgt_schema, i.pgt_name), s.pgt_relid::bigint,"
            " obj_description(t.oid, 'pg_trigger'), i.defining_query"
            " from pgtrickle.stream_tables_info i join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id"
            " join pg_trigger t on t.tgrelid = s.pgt_relid and t.tgname = 'pgtrickle_guard' order by 1"
        ).fetchall()
        assert found
        return found


@pytest.fixture(scope="session")
def dbt() -> Iterator[Dbt]:
    if not PYTHON.exists():
        pytest.skip("dbt is not installed here: scripts/setup dbt")
    dbt = Dbt()
    yield dbt
    dbt.close()


@pytest.fixture(scope="session")
def prepared(dbt: Dbt, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with its packages, and what dbt keeps to parse it faster."""
    directory = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(Path(__file__).with_name("project"), directory)
    where = ["--project-dir", str(directory), "--profiles-dir", str(directory)]
    dbt.run(["deps", *where], {"PGTRICKLE_PACKAGE": str(PACKAGE)}).succeeds()
    return directory


@pytest.fixture
def project(dbt: Dbt, prepared: Path, tmp_path: Path, database: Database, app, admin) -> Project:
    """The project, as the owner of its sources, with nothing built yet."""
    directory = tmp_path / "shop"
    shutil.copytree(prepared, directory, symlinks=True)
    admin.execute("drop role if exists reader")
    admin.execute("create role reader")
    admin.execute(f'grant create on database "{database.name}" to app')
    app.execute(SOURCES)
    return Project(dbt, directory, database, app, database.server.port)


@pytest.fixture
def sidecar(engine: Engine, project: Project) -> Iterator[Sidecar]:
    """A sidecar that serves the database of the project."""
    with running(engine) as sidecar:
        yield sidecar
