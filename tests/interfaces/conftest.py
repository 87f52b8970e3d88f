"""The command line, run in this process as a shell would run it, on the test's database."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from pgtrickle.interfaces.cli.application import run
from pgtrickle.pipeline.session import Spark, adopt
from tests.fixtures.databases import APP, Database


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed, and the exit code the shell got."""

    exit_code: int
    out: str
    err: str


Cli = Callable[..., Answer]
"""Called as `cli("list", "--json")`, or as another role: `cli("install", role="trickle")`."""


@pytest.fixture
def cli(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def command(*arguments: str, role: str = APP, dsn: str | None = None) -> Answer:
        monkeypatch.setenv("PGTRICKLE_DSN", dsn if dsn is not None else database.dsn(role))
        capsys.readouterr()
        exit_code = run(arguments)
        out, err = capsys.readouterr()
        return Answer(exit_code, out, err)

    yield command
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def shared_spark(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that would start a Spark use the one of this run, and leave it running."""
    monkeypatch.setattr("pgtrickle.pipeline.session.open_spark", lambda *_, **__: adopt(spark.small))


@pytest.fixture
def everything(admin: psycopg.Connection) -> Callable[[], list[tuple[object, ...]]]:
    """All that a command could leave behind: relations, functions, triggers and stream tables."""

    def look() -> list[tuple[object, ...]]:
        return admin.execute(
            "select 'relation', oid::regclass::text, relfilenode::text from pg_class"
            " where relnamespace::regnamespace::text !~ '^pg_(toast|temp)'"
            " union all select 'function', oid::regprocedure::text, xmin::text from pg_proc"
            " union all select 'trigger', tgname, tgrelid::text from pg_trigger"
            " union all select 'stream table', s::text, '' from pgtrickle.pgt_stream_tables s"
            " order by 1, 2, 3"
        ).fetchall()

    return look
