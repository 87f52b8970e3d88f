"""One database of TPC-H's data: each query as a stream table, and as what it is measured against."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import psycopg
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from bench.stage import Place, Stage
from bench.timing import milliseconds
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import RefreshMode, StreamTableId
from pgtrickle.plan.explain import missing_indexes
from pgtrickle.plan.programs import programs_for_all
from pgtrickle.refresh.prepare import prepare
from pgtrickle.refresh.story import refresh
from tests.tpch.answers import assert_answers
from tests.tpch.loading import create_tables, fill_tables
from tests.tpch.plain import PlainChanges
from tests.tpch.published import Query, query

PATIENCE_SECONDS = 120
"""How long a refresh, ours or PostgreSQL's, may take before its query is given up."""
LOADING_PATIENCE_SECONDS = 600
"""The same for a first load."""

# the last is what Spark says when its jobs are cancelled
Failures = (PgTrickleError, psycopg.Error, AssertionError, Py4JJavaError)


@dataclass(slots=True)
class Subject:
    """A query that is followed; once it has failed it is not measured any more."""

    query: Query
    table: StreamTableId
    mode: RefreshMode
    reason: str
    indexes: list[str]
    failure: str = ""

    @property
    def name(self) -> str:
        return self.query.name


@dataclass(slots=True)
class Board:
    """The database of one scale and its subjects."""

    scale: float
    place: Place
    changes: PlainChanges
    subjects: dict[str, Subject] = field(default_factory=dict)
    twins: dict[str, StreamTableId] = field(default_factory=dict)
    loading: dict[str, float] = field(default_factory=dict)

    @property
    def alive(self) -> list[Subject]:
        """The subjects that have not failed."""
        return [subject for subject in self.subjects.values() if not subject.failure]

    def follow(self, subject: Subject) -> None:
        """Refresh the stream table."""
        with _patience(self.place, PATIENCE_SECONDS):
            refresh(self.place.trickle.engine, subject.table, initiated_by="bench", waits=True)

    def load(self, subject: Subject) -> None:
        """Refresh the stream table for the first time."""
        with _patience(self.place, LOADING_PATIENCE_SECONDS):
            refresh(self.place.trickle.engine, subject.table, initiated_by="bench", waits=True)

    def recompute(self, subject: Subject) -> None:
        """Refresh its twin, which is always computed in full."""
        with _patience(self.place, PATIENCE_SECONDS):
            refresh(self.place.trickle.engine, self.twins[subject.name], initiated_by="bench", waits=True)

    def refresh_view(self, subject: Subject) -> None:
        """Let PostgreSQL refresh its materialized view of the same query."""
        self.place.connection.execute(f"refresh materialized view {_view(subject)}")

    def attempt(self, what: str, subject: Subject, action: Callable[[], object]) -> float | None:
        """How long the action takes; if it fails, that is noted and the subject is out."""
        if subject.failure:
            return None
        try:
            took = milliseconds(action)
        except Failures as error:
            subject.failure = f"{what}: {_first_line(error)}"
            say(f"{self.scale:g} {subject.name} {subject.failure}")
            return None
        say(f"{self.scale:g} {subject.name} {what}: {took:,.0f} ms")
        return took

    def create_twins(self) -> None:
        for subject in self.alive:
            self.place.trickle.create_stream_table(_twin(subject), subject.query.text, None, "FULL")
            self.twins[subject.name] = self.place.id_of(_twin(subject))
            self.attempt("full load", subject, partial(self.recompute, subject))

    def drop_twins(self) -> None:
        for name in self.twins:
            self.place.trickle.drop_stream_table(_twin(self.subjects[name]))

    def create_views(self) -> None:
        for subject in self.alive:
            statement = f"create materialized view {_view(subject)} as {subject.query.text}"
            self.attempt("view", subject, partial(self.place.connection.execute, statement))

    def check(self) -> None:
        """Every stream table that was followed to the end must hold PostgreSQL's own answer."""
        for subject in self.alive:
            compare = partial(assert_answers, self.place.connection, subject.name, subject.query)
            self.attempt("check", subject, compare)


@contextmanager
def board(stage: Stage, scale: float, names: Sequence[str]) -> Iterator[Board]:
    """Load the data, create the stream tables and the indexes that `explain` asks for, fill them."""
    with stage.database(f"tpch_{scale:g}") as place:
        create_tables(place.connection)
        say(f"{scale:g} loaded: {milliseconds(partial(fill_tables, place.connection, scale)):,.0f} ms")
        place.connection.execute(f"set statement_timeout = '{LOADING_PATIENCE_SECONDS}s'")
        place.settle()
        ready = Board(scale, place, PlainChanges(place.connection))
        for name in names:
            ready.subjects[name] = _created(place, query(name, scale))
        for index in dict.fromkeys(index for s in ready.subjects.values() for index in s.indexes):
            place.connection.execute(index)
        for subject in ready.subjects.values():
            place.trickle.engine.forget(subject.table)
        place.settle()
        for subject in ready.subjects.values():
            took = ready.attempt("first load", subject, partial(ready.load, subject))
            if took is not None:
                ready.loading[subject.name] = took
        yield ready


def _created(place: Place, asked: Query) -> Subject:
    place.trickle.create_stream_table(asked.name, asked.text, None)
    table = place.id_of(asked.name)
    try:
        found = prepare(place.trickle.engine, table).compilation
    except Failures as error:
        return Subject(asked, table, RefreshMode.AUTO, "", [], failure=_first_line(error))
    indexes = missing_indexes(*programs_for_all(found.compiled)) if found.compiled else []
    return Subject(asked, table, found.effective_mode, found.reason, indexes)


@contextmanager
def _patience(place: Place, seconds: int) -> Iterator[None]:
    """Cancel what Spark and PostgreSQL are still doing when patience ends."""
    timer = threading.Timer(seconds, partial(_cancel, place))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cancel(place: Place) -> None:
    place.trickle.engine.spark.large.sparkContext.cancelAllJobs()
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute(
            "select pg_cancel_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name like 'pgtrickle%'"
        )


def say(what: str) -> None:
    """Long measurements tell where they are, beside the table that they end with."""
    print(what, file=sys.stderr, flush=True)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _twin(subject: Subject) -> str:
    return f"{subject.name}_full"


def _view(subject: Subject) -> str:
    return f"{subject.name}_view"
