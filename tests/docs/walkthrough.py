"""Follows a page as a reader does: runs its commands and SQL in order, and compares what it shows."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import psycopg

from pgtrickle.embedded import SUPERUSER, Server
from tests.docs.pages import Block, blocks
from tests.fixtures.waiting import eventually

SECOND_TERMINAL = "in a second terminal"
_WHERE = re.compile(r"^as (?P<role>the superuser|\w+), in database (?P<database>\w+)$")
_ROLE = re.compile(r"create role (\w+) login")
_SHOWN_WITHIN_SECONDS = 240
_COMMAND_SECONDS = 240


@dataclass(slots=True)
class Walkthrough:
    """One reader: two terminals, and psql."""

    server: Server
    programs: Path
    """Where psql is."""
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    sidecar: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        called = self.directory / "pgtrickle"
        called.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pgtrickle.interfaces.cli "$@"\n')
        called.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{self.directory}:{self.programs}:{os.environ['PATH']}",
            # pages name localhost and no port, as most readers have it
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.server.port),
            "PGPASSWORD": self.server.password,
            "PGTRICKLE_CACHE_DIR": "off",
            "PGTZ": "UTC",
            "COLUMNS": "200",
        }

    def follow(self, page: Path) -> None:
        """Run every block of a page that is to be run."""
        run = [block for block in blocks(page) if block.is_run]
        for block, following in zip_longest(run, run[1:]):
            expected = following.text if following is not None and following.language == "text" else None
            match block.language:
                case "sh" if block.title == SECOND_TERMINAL:
                    self._start(block)
                case "sh":
                    self._compare(block, self._shell(block), expected)
                case "sql":
                    self._sql(block, expected)
                case _:
                    assert block.language == "text", f"{block}: a block that nothing runs"

    def _sql(self, block: Block, expected: str | None) -> None:
        where = _WHERE.match(block.title)
        assert where, f"{block}: say who runs it and in which database"
        role = SUPERUSER if where["role"] == "the superuser" else where["role"]
        is_query = block.text.lstrip().lower().startswith("select * from") and expected is not None
        if is_query:
            # it shows up when the stream table has been refreshed
            assert expected is not None
            shown: list[str] = []

            def matches() -> bool:
                shown[:] = [self._psql(block, role, where["database"])]
                return _same(shown[0], expected)

            try:
                eventually(matches, seconds=_SHOWN_WITHIN_SECONDS)
            except AssertionError:
                raise AssertionError(f"{block} shows\n{shown[0]}\nand not\n{expected}") from None
        else:
            self._compare(block, self._psql(block, role, where["database"]), expected)
        self._set_passwords(block)

    def _psql(self, block: Block, role: str, database: str) -> str:
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", role, "-d", database, "-f", "-"]
        return self._run(block, command, block.text)

    def _shell(self, block: Block) -> str:
        # what a line exports holds for the rest of the page
        exported = self.directory / "exported"
        script = f"set -e\n{block.text}\nenv -0 > {shlex.quote(str(exported))}\n"
        said = self._run(block, ["bash", "-c", script], "")
        pairs = (entry.split("=", 1) for entry in exported.read_text().split("\0") if "=" in entry)
        self.environment.update(dict(pairs))
        return said

    def _run(self, block: Block, command: list[str], given: str) -> str:
        done = subprocess.run(
            command,
            input=given,
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _start(self, block: Block) -> None:
        assert self.sidecar is None, f"{block}: one sidecar is enough"
        log = (self.directory / "sidecar.log").open("wb")
        self.sidecar = subprocess.Popen(
            ["bash", "-c", f"exec {block.text}"],
            env=self.environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()

    def stop(self) -> None:
        """End the sidecar as Ctrl-C does."""
        if self.sidecar is None:
            return
        self.sidecar.send_signal(signal.SIGINT)
        assert self.sidecar.wait(60) in (0, 130), (self.directory / "sidecar.log").read_text()

    def _set_passwords(self, block: Block) -> None:
        """Give roles that a page has created the password of this server, which psql gets from us."""
        with psycopg.connect(self.server.dsn(), autocommit=True) as admin:
            for role in _ROLE.findall(block.text):
                admin.execute(
                    psycopg.sql.SQL("alter role {} password {}").format(
                        psycopg.sql.Identifier(role), psycopg.sql.Literal(self.server.password)
                    )
                )

    def _compare(self, block: Block, said: str, expected: str | None) -> None:
        if expected is not None:
            assert _same(said, expected), f"{block} shows\n{said}\nand not\n{expected}"


def _same(said: str, expected: str) -> bool:
    """Whether two texts are equal but for spaces at the ends of lines; … stands for any text."""
    pattern = re.escape("\n".join(map(str.rstrip, expected.strip().splitlines()))).replace("…", ".*")
    return re.fullmatch(pattern, "\n".join(map(str.rstrip, said.strip().splitlines()))) is not None


@contextmanager
def walkthrough(server: Server, programs: Path, directory: Path) -> Iterator[Walkthrough]:
    """A reader whose sidecar is stopped at the end."""
    reader = Walkthrough(server, programs, directory)
    try:
        yield reader
    finally:
        reader.stop()
