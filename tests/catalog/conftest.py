"""Somebody who listens to alerts."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest

from pgtrickle.catalog.alerts import CHANNELS
from tests.fixtures.databases import APP, Connect

Heard = Callable[[], list[dict[str, object]]]
"""What has come so far on both channels, each alert as its facts."""


@pytest.fixture
def heard(connect: Connect) -> Heard:
    connection: psycopg.Connection = connect(APP)
    connection.autocommit = True
    for channel in CHANNELS:
        connection.execute(f"listen {channel}")

    def hear() -> list[dict[str, object]]:
        connection.execute("select 1")
        return [json.loads(notice.payload) for notice in connection.notifies(timeout=0)]

    return hear
