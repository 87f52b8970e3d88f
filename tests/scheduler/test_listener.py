"""Whoever listens is woken by a plain NOTIFY, also after the connection was lost."""

from __future__ import annotations

import threading
import time

import pytest

from pgtrickle.scheduler.service.listener import CHANNEL, Listener
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually


@pytest.fixture
def heard() -> threading.Event:
    return threading.Event()


@pytest.fixture
def listener(database, heard):
    with Listener(database.dsn(TRICKLE), heard) as listener:
        eventually(lambda: listener.is_listening)
        # it cannot know what was said before
        assert heard.wait(90)
        heard.clear()
        yield listener


def test_a_notification_wakes_at_once(listener, heard, app):
    for _ in range(3):
        app.execute(f"notify {CHANNEL}")
        assert heard.wait(90)
        heard.clear()


def test_another_channel_wakes_nobody(listener, heard, app):
    app.execute("notify somewhere_else")
    app.execute(f"notify {CHANNEL}")
    assert heard.wait(90)
    heard.clear()
    app.execute("notify somewhere_else")
    assert not heard.wait(0.2)


def test_a_lost_connection_is_taken_up_again(listener, heard, admin, app):
    admin.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pgtrickle listener'"
    )
    # set by the new connection: something may have been said meanwhile
    assert heard.wait(90)
    heard.clear()
    app.execute(f"notify {CHANNEL}")
    assert heard.wait(90)


def test_closing_takes_no_time_and_leaves_no_connection(database, heard, admin):
    listener = Listener(database.dsn(TRICKLE), heard)
    with listener:
        eventually(lambda: listener.is_listening)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert not listener.is_listening
    here = "select count(*) from pg_stat_activity where application_name = 'pgtrickle listener'"
    eventually(lambda: admin.execute(here).fetchone() == (0,))


def test_closing_does_not_wait_for_a_server_that_is_gone(heard):
    with Listener("postgresql://nobody@127.0.0.1:1/nowhere", heard) as listener:
        assert not listener.is_listening
        began = time.monotonic()
    assert time.monotonic() - began < 5
