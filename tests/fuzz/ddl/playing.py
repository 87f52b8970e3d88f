"""Playing random DDL against a running sidecar, and comparing every stream table with its query."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from pgtrickle.embedded import SUPERUSER
from tests.fixtures.bags import difference
from tests.fixtures.databases import APP, TRICKLE, Database
from tests.fuzz.ddl import statements
from tests.fuzz.ddl.statements import Batch, Ending, Step

SCHEMA: Final = "arena"
REPORTER: Final = "reporter"
"""Owns the stream tables whose rights are revoked."""
SETTLED_WITHIN: Final = 40.0
"""Seconds in which every stream table must be right, or say why it is not."""
LOADED_WITHIN: Final = 120.0

STREAM_TABLES: Final = {
    "by_customer": (
        APP,
        "select customer, count(*) as orders, sum(amount) as total from orders group by customer",
    ),
    "labels": (APP, "select id, kind, label from events"),
    "kinds": (APP, "select kind, count(*) as n, max(label) as top from events group by kind"),
    "family": (APP, "select label, count(*) as n from parents group by label"),
    "adopted": (APP, "select id, label from later"),
    "lone": (APP, "select kind, count(*) as n from loose group by kind"),
    "large": (
        APP,
        "select b.id, b.amount, c.name from big_orders b left join customers c on c.id = b.customer",
    ),
    "scales": (APP, "select id, scaled(customer) as scale, worded(customer) as word from orders"),
    "moods": (APP, "select feeling, count(*) as n, min(size) as least from orders group by feeling"),
    "pairs": (APP, "select id, at_pair, feeling::text as word from orders"),
    "people": (APP, "select region, people from regions"),
    "above": (APP, "select count(*) as customers, sum(total) as total from by_customer"),
    "reported": (
        REPORTER,
        "select c.region, sum(o.amount) as total from orders o join customers c on c.id = o.customer"
        " group by c.region",
    ),
    "reported_large": (REPORTER, "select id, amount from big_orders"),
}

# a stream table may refuse to go on although PostgreSQL answers its query
REFUSALS: Final = re.compile(
    r"volatile|row-level security|may not|permission denied|would run code|does not have the columns|inherit"
    r"|was altered|lost its trigger|has another|guard|reads? (itself|a table)|declare|renamed|is now called"
    r"|privilege|not trusted|is unlogged|columns? ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not happen, with the statements that led to it."""

    what: str
    batches: tuple[Batch, ...]

    def __str__(self) -> str:
        steps = (str(step) for batch in self.batches for step in batch)
        return "\n\n".join([*steps, self.what])


@dataclass(slots=True)
class Arena:
    """A database with the arena in it, and those who act there."""

    database: Database
    admin: psycopg.Connection
    app: psycopg.Connection

    def act(self, step: Step) -> str | None:
        """Run a step; what went wrong if pgtrickle was the reason."""
        connection = self.admin if step.role == statements.ADMIN else self.app
        if connection is self.admin and self._misses_replicated_writes():
            self.admin.execute("reset session_replication_role")
        try:
            if step.ending is Ending.EACH:
                for statement in step.statements:
                    problem = self._run(connection, statement)
                    if problem:
                        return problem
                return None
            with connection.transaction(force_rollback=step.ending is Ending.ROLLBACK):
                for statement in step.statements:
                    connection.execute(statement)
        except psycopg.Error as error:
            return _blame(error)
        return None

    def _misses_replicated_writes(self) -> bool:
        """Whether a trigger that the sidecar made anew on a table it does not own sleeps under `replica`.

        Only the owner of the table can let it fire always: docs/CAPTURE.md says so.
        """
        row = self.admin.execute(
            "select exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid"
            " where p.pronamespace = to_regnamespace('pgtrickle_changes') and t.tgenabled = 'O')"
        ).fetchone()
        return row == (True,)

    def _run(self, connection: psycopg.Connection, statement: str) -> str | None:
        try:
            connection.execute(statement)
        except psycopg.Error as error:
            return _blame(error)
        return None

    def mend(self) -> None:
        """Give back every right, so that only pgtrickle itself can keep a stream table from going on."""
        for statement in (
            "reset session_replication_role",
            f"grant usage on schema {SCHEMA} to {REPORTER}, {TRICKLE}",
            f"grant select on all tables in schema {SCHEMA} to {REPORTER}",
            f"grant select, trigger on all tables in schema {SCHEMA} to {TRICKLE}",
            f"grant execute on all functions in schema {SCHEMA} to public",
        ):
            self.admin.execute(statement)

    def unsettled(self) -> dict[str, str]:
        """Every stream table that neither equals its query nor says why, and what is wrong with it."""
        rows = self.admin.execute(
            "select pgt_schema, pgt_name, owner, defining_query, status, last_error, is_populated"
            " from pgtrickle.stream_tables_info order by pgt_id"
        ).fetchall()
        found = {}
        for schema, name, owner, query, status, error, is_populated in rows:
            wrong = self._wrong(f'"{schema}"."{name}"', owner, query)
            says_why = bool(error) and status != "INITIALIZING"
            if wrong and wrong.startswith("cannot") and not says_why:
                found[name] = f"{status}, last error {error!r}, but PostgreSQL says: {wrong}"
            elif wrong and not wrong.startswith("cannot") and not says_why:
                found[name] = f"wrong rows, status {status}, populated {is_populated}:\n{wrong}"
            elif not wrong and status != "ACTIVE" and not (says_why and REFUSALS.search(error)):
                found[name] = f"{status} although PostgreSQL answers, last error: {error}"
            elif wrong and not wrong.startswith("cannot") and not REFUSALS.search(error or ""):
                found[name] = f"{status}, cannot go on although PostgreSQL answers: {error}"
        return found

    def _wrong(self, name: str, owner: str, query: str) -> str | None:
        """How a stream table differs from its query; `cannot …` where PostgreSQL has no answer either."""
        try:
            with self.admin.transaction(force_rollback=True):
                self.admin.execute(sql.SQL("set local role {}").format(sql.Identifier(owner)))
                self.admin.execute(f"explain {query}")
        except psycopg.Error as error:
            return f"cannot be answered for {owner}: {error}"
        try:
            with self.admin.transaction(force_rollback=True):
                self.admin.execute(sql.SQL("set local role {}").format(sql.Identifier(TRICKLE)))
                self.admin.execute(f"explain {query}")
        except psycopg.Error as error:
            return f"cannot be answered for {TRICKLE}: {error}"
        try:
            found = difference(self.admin, f"select * from only {name}", query)
        except psycopg.Error as error:
            return f"cannot be compared: {error}"
        return "\n".join(found[:10]) or None


# nobody but pgtrickle shares the arena with the application
_OURS: Final = re.compile("pgtrickle|timeout|deadlock")


def _blame(error: psycopg.Error) -> str | None:
    text = f"{error} {error.diag.context or ''}"
    if "is a stream table and cannot be written" in text:
        return None
    return f"the application failed: {text}" if _OURS.search(text) else None


@contextmanager
def arena(database: Database) -> Iterator[Arena]:
    """The arena in a new database, with its stream tables created and not yet loaded."""
    with (
        closing(database.connect(SUPERUSER, autocommit=True)) as admin,
        closing(database.connect(APP, autocommit=True)) as app,
    ):
        _create(admin)
        for connection in (admin, app):
            connection.execute(f"set search_path = {SCHEMA}")
            connection.execute("set statement_timeout = '30s'")
        for name, (owner, query) in STREAM_TABLES.items():
            with admin.transaction():
                admin.execute(sql.SQL("set local role {}").format(sql.Identifier(owner)))
                admin.execute(
                    "select pgtrickle.create_stream_table(%s, %s, '1s')", (f"{SCHEMA}.{name}", query)
                )
        yield Arena(database, admin, app)


def _create(admin: psycopg.Connection) -> None:
    if admin.execute("select from pg_roles where rolname = %s", (REPORTER,)).fetchone() is None:
        admin.execute(f"create role {REPORTER}")
    admin.execute(f"create schema {SCHEMA} authorization {APP}")
    admin.execute(f"set search_path = {SCHEMA}")
    admin.execute((Path(__file__).parent / "arena.sql").read_text())
    for name, kind in admin.execute(
        "select relname, relkind from pg_class"
        " where relnamespace = %s::regnamespace and relkind in ('r', 'p', 'v', 'm')",
        (SCHEMA,),
    ).fetchall():
        noun = {"v": "view", "m": "materialized view"}.get(kind, "table")
        admin.execute(f"alter {noun} {name} owner to {APP}")
    for name in ("mood", "pair"):
        admin.execute(f"alter type {name} owner to {APP}")
    admin.execute(f"alter domain small owner to {APP}")
    admin.execute(f"grant usage on schema {SCHEMA} to {TRICKLE}")
    admin.execute(f"grant usage, create on schema {SCHEMA} to {REPORTER}")
    admin.execute(f"grant select on all tables in schema {SCHEMA} to {REPORTER}")
    admin.execute(f"grant select, trigger on all tables in schema {SCHEMA} to {TRICKLE}")


def play(ready: Arena, batches: Sequence[Batch]) -> Finding | None:
    """One round in a new arena: batches of statements, each followed by a comparison of everything."""
    settling = Settling(ready)
    problem = settling.wait(LOADED_WITHIN)
    for number, batch in enumerate(batches):
        for step in batch:
            problem = problem or ready.act(step)
        problem = problem or settling.wait()
        if problem:
            return Finding(problem, tuple(batches[: number + 1]))
    ready.mend()
    problem = settling.wait(resumes=True)
    return (
        Finding(f"once everything was given back and resumed: {problem}", tuple(batches)) if problem else None
    )


@dataclass(frozen=True, slots=True)
class Settling:
    """Waits until every stream table is right, or says why it is not."""

    ready: Arena

    def wait(self, seconds: float = SETTLED_WITHIN, *, resumes: bool = False) -> str | None:
        """What is still wrong when time is up; None if nothing is."""
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        if resumes:
            self._resume()
        while True:
            found = self.ready.unsettled()
            if not found:
                return None
            if time.monotonic() > deadline:
                return "\n".join(f"{name}: {what}" for name, what in found.items())
            pause.wait(0.2)

    def _resume(self) -> None:
        names = self.ready.admin.execute(
            "select format('%I.%I', pgt_schema, pgt_name) from pgtrickle.stream_tables_info"
            " where status <> 'ACTIVE'"
        ).fetchall()
        for (name,) in names:
            # one that has lost its guard is repaired, which resumes it too; what repair refuses says why
            if not self._is_accepted("select pgtrickle.resume_stream_table(%s)", name):
                self._is_accepted("select pgtrickle.repair_stream_table(%s)", name)

    def _is_accepted(self, command: str, name: str) -> bool:
        """Run a command; false if pgtrickle refuses it because of the state of the stream table."""
        try:
            self.ready.admin.execute(command, (name,))
        except psycopg.Error as refusal:
            if not (refusal.sqlstate or "").startswith(("T", "55000")):
                raise
            return False
        return True
