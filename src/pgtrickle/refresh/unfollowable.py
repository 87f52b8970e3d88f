"""Values that only PostgreSQL can compute with, told apart from failures that may pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pgtrickle.model.errors import SparkFailed
from pgtrickle.postgres.connection import DataError

_TOO_LARGE = (
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "ArrowInvalid",
    "DataError",
    "DataException",
)


class Unfollowable(Exception):
    """A value that only PostgreSQL can compute with, such as a NaN among decimals."""


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
