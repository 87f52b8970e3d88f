"""Fixtures of the apply tests: an open transaction that is never committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest

from pgtrickle.plan.program import Target
from tests.apply.stream import Stream, create_stream

Streams = Callable[[Target], AbstractContextManager[Stream]]


@pytest.fixture(params=[False, True], ids=["arrays", "staged"])
def streams(connection: psycopg.Connection, request: pytest.FixtureRequest) -> Streams:
    """A fresh stream table for each example of a law, gone when the example ends."""

    @contextmanager
    def fresh(target: Target) -> Iterator[Stream]:
        try:
            yield create_stream(connection, target, staged=request.param)
        finally:
            connection.rollback()

    return fresh
