"""Where a refresh begins and ends, for what it reads; and values that it cannot follow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pgtrickle.changes.relations import Ends
from pgtrickle.model.errors import SparkFailed
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import DataError
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.windows import start_of

_TOO_LARGE = (
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "ArrowInvalid",
    "DataError",
    "DataException",
)


class Unfollowable(Exception):
    """A value that only PostgreSQL can compute with, such as a NaN among decimals."""


def ends_of(session: Session, table: StreamTable) -> Ends:
    """Each source's frontier as the table has followed it, and the clock then and now."""

    def frontier(source: Source) -> Frontier:
        return start_of(table, source) or Frontier(3, 3)

    return Ends(frontier, table.data_timestamp, session.taken_at)


@contextmanager
def followable() -> Iterator[None]:
    """Tell values that only PostgreSQL can compute with from failures that may pass."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise Unfollowable(f"a value cannot be carried to Spark: {error}") from error
    except DataError as error:
        # a row that a join leaves out need not satisfy what is computed of the rows it keeps
        raise Unfollowable(f"while reading: {error.diag.message_primary}") from error
    except SparkFailed as error:
        if any(sign in error.message for sign in _TOO_LARGE):
            raise Unfollowable(error.message) from error
        raise
