"""Where rounds run: one database, one engine, the application that arranges, and two that write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg

from pgtrickle.catalog.tables import find
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.stream_table import RefreshOutcome, StreamTable
from pgtrickle.pipeline.session import Spark, open_spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import APP, TEMPLATE, TRICKLE, Database, Templates, create_database
from tests.fixtures.servers import EMBEDDED, new_server
from tests.fuzz.batches import WRITERS, Kind, Step
from tests.fuzz.rounds import Round

SCHEMA: Final = "fuzz"
TIMEOUT: Final = "3s"
"""How long PostgreSQL may take for its own answer."""

_HARMLESS = (
    psycopg.errors.IntegrityError,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
)


class _Regret(Exception):
    """The writer changes its mind."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Everything a round needs, used again by the next one."""

    engine: Engine
    admin: psycopg.Connection
    app: psycopg.Connection
    writers: dict[str, psycopg.Connection]

    @contextmanager
    def arranged(self, drawn: Round) -> Iterator[None]:
        """The tables of a round, filled; everything is gone afterwards."""
        self.admin.execute(f"create schema {SCHEMA} authorization {APP}")
        self.admin.execute(f"grant usage on schema {SCHEMA} to {TRICKLE}")
        try:
            for statement in drawn.arrangement:
                self.app.execute(statement)
            self.app.execute(f"grant select, trigger on all tables in schema {SCHEMA} to {TRICKLE}")
            yield
        finally:
            for writer in self.writers.values():
                writer.rollback()
            self._cleared()

    def create(self, name: str, query: str) -> None:
        with self.app.transaction():
            self.app.execute("set local statement_timeout = 0")
            self.app.execute(
                # a wrong delta is a finding, not something to repair
                "select pgtrickle.create_stream_table(%s, %s, schedule => null, on_divergence => 'stop')",
                (f"{SCHEMA}.{name}", query),
            )

    def known(self, name: str) -> StreamTable:
        """The stream table as the catalog knows it."""
        with self.engine.connection() as connection:
            return find(connection, f"{SCHEMA}.{name}")

    def refresh(self, name: str) -> RefreshOutcome:
        return refresh(self.engine, self.known(name).id, initiated_by="fuzz", waits=True)

    def act(self, step: Step) -> None:
        """What a writer does; what PostgreSQL refuses it leaves its transaction as it was."""
        writer = self.writers[step.writer]
        if step.kind is Kind.COMMIT:
            writer.commit()
        elif step.kind is Kind.ROLLBACK:
            writer.rollback()
        else:
            try:
                with writer.transaction():
                    writer.execute(step.sql)
                    if step.kind is Kind.UNDONE:
                        raise _Regret
            except (_Regret, *_HARMLESS):
                pass

    def _cleared(self) -> None:
        names = self.app.execute(
            "select pgt_schema || '.' || pgt_name, pgt_id from pgtrickle.pgt_stream_tables"
        ).fetchall()
        for name, number in names:
            self.app.execute("select pgtrickle.drop_stream_table(%s, cascade => true)", (name,))
            self.engine.forget(number)
        self.admin.execute(f"drop schema {SCHEMA} cascade")


@contextmanager
def ground(database: Database, engine: Engine) -> Iterator[Ground]:
    """Connections to a database in which the product is installed."""
    with ExitStack() as stack:

        def connected(role: str, *, autocommit: bool) -> psycopg.Connection:
            return stack.enter_context(closing(database.connect(role, autocommit=autocommit)))

        app = connected(APP, autocommit=True)
        app.execute(f"set search_path = {SCHEMA}")
        app.execute(f"set statement_timeout = '{TIMEOUT}'")
        # compiling these queries takes longer than answering them
        app.execute("set jit = off")
        writers = {name: connected(APP, autocommit=False) for name in WRITERS}
        for writer in writers.values():
            writer.execute(f"set search_path = {SCHEMA}")
            writer.execute("set lock_timeout = '20ms'")
            writer.commit()
        yield Ground(engine, connected(SUPERUSER, autocommit=True), app, writers)


@contextmanager
def own_ground(version: int = EMBEDDED) -> Iterator[Ground]:
    """A ground with a server and a Spark of its own."""
    with new_server(version) as server:
        Templates().ensure(server)
        database = create_database(server, "fuzz", TEMPLATE)
        with _engine(database, open_spark()) as engine, ground(database, engine) as ready:
            yield ready


@contextmanager
def _engine(database: Database, spark: Spark) -> Iterator[Engine]:
    engine = Engine(database.dsn(TRICKLE), lambda: spark)
    try:
        yield engine
    finally:
        engine.close()
        spark.close()
