"""Loads report how far they are: to the terminal of the sidecar, and to those who wait for them."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from pgtrickle.catalog.load_progress import LoadProgress, reported_progress
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.service import load_watch
from pgtrickle.scheduler.service.load_watch import LoadWatch
from pgtrickle.scheduler.service.vitals import Vitals, publish
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually

SALES = RelationName("public", "sales")
LOADING = {StreamTableId(1): SALES}


@pytest.fixture
def watch(source, app, connection, monkeypatch) -> Any:
    """The watch of a sidecar that reports at every step, over a stream table that is not loaded."""
    monkeypatch.setattr(load_watch, "EVENT_SECONDS", 0.0)
    source("orders(id int primary key)", rows=[(number,) for number in range(500)])
    app.execute("analyze orders")
    app.execute("select pgtrickle.create_stream_table('sales', 'select count(*) as n from orders')")
    events: list[Any] = []
    dispatcher: Any = SimpleNamespace(vitals=Vitals(), on_event=events.append, loads=None, events=events)
    publish(connection, dispatcher.vitals, workers=1, busy=1, queued=0, more={})
    connection.commit()
    return LoadWatch(dispatcher)


def test_rows_that_were_read_are_reported_while_a_load_runs(watch, database, connection, app):
    dsn = f"{database.dsn(TRICKLE)}?application_name=pgtrickle"
    with (
        closing(psycopg.connect(dsn)) as reader,
        reader.cursor() as cursor,
        cursor.copy("copy (select g from generate_series(1, 1000000) g) to stdout") as rows,
    ):
        next(iter(rows))

        def found() -> LoadProgress | None:
            watch.step(connection, LOADING)
            connection.commit()
            return reported_progress(app, StreamTableId(1))

        eventually(lambda: (progress := found()) is not None and progress.rows_read > 0)
        told = watch.dispatcher.events[-1]
        assert told.name == SALES
        assert told.note.startswith("loading: ")
        assert told.note.endswith(" of about 500 rows read")
        reader.cancel()
        with pytest.raises(psycopg.errors.QueryCanceled):
            for _ in rows:
                pass
    watch.step(connection, {})
    connection.commit()
    assert reported_progress(app, StreamTableId(1)) is None


def test_only_those_who_wait_for_the_loaded_table_see_its_progress(watch, connection, app):
    watch.step(connection, LOADING)
    connection.commit()
    assert reported_progress(app, StreamTableId(1)) is not None
    assert reported_progress(app, StreamTableId(2)) is None


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (LoadProgress(0, 0, None, True), "0 rows read"),
        (LoadProgress(120_000, 0, 400_000, True), "120,000 of about 400,000 rows read"),
        (LoadProgress(400_000, 10, 400_000, True), "400,000 of about 400,000 rows read, 10 staged"),
        (LoadProgress(400_000, 0, 400_000, False), "400,000 rows read, computing"),
    ],
)
def test_progress_reads_as_a_sentence(progress, text):
    assert str(progress) == text
