"""Definitions wait a little for locks that others hold, and then say who is in the way."""

from __future__ import annotations

import pytest

from pgtrickle.commands import define
from pgtrickle.model.errors import Busy
from tests.fixtures.databases import APP

QUERY = "select id from orders"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key)")


def test_a_locked_source_is_tried_again(database, orders, connect, monkeypatch):
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    # the writer commits while the command pauses
    monkeypatch.setattr(define, "sleep", lambda _: writer.commit())
    define.create(database.dsn(APP), "copy", QUERY, {})
    assert writer.execute("select pgtrickle.find_stream_table('copy') is not null").fetchall() == [(True,)]


def test_a_source_that_stays_locked_is_busy_and_nothing_is_left(database, orders, connect, app, monkeypatch):
    monkeypatch.setattr(define, "PAUSES", (0.01,))
    connect(APP).execute("insert into orders values (1)")
    with pytest.raises(Busy):
        define.create(database.dsn(APP), "copy", QUERY, {})
    assert app.execute("select to_regclass('copy')").fetchall() == [(None,)]
