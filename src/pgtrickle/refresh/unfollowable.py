"""Values that only PostgreSQL can compute with, told apart from failures that may pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pgtrickle.model.errors import SparkFailed
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW
from pgtrickle.postgres.connection import DataError

_TOO_LARGE = (
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "ArrowInvalid",
    "DataError",
    "DataException",
)
_OUT_OF_MEMORY = ("OutOfMemoryError", "OutOfMemoryException", "UNABLE_TO_ACQUIRE_MEMORY")


class Unfollowable(Exception):
    """A value that only PostgreSQL can compute with, such as a NaN among decimals.

    The reason does not quote it: it may be of a row that the owner of the stream table may not see, and
    reasons are told to everybody who listens to alerts.
    """


@contextmanager
def followable() -> Iterator[None]:
    """Tell values that only PostgreSQL can compute with from failures that may pass."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise Unfollowable("a value cannot be carried to Spark") from error
    except DataError as error:
        # a row that a join leaves out need not satisfy what is computed of the rows it keeps
        raise Unfollowable(f"a value fails while it is read ({type(error).__name__})") from error
    except SparkFailed as error:
        if MORE_THAN_ONE_ROW in error.message:
            # PostgreSQL asks a subquery only for rows that conditions, joins and limits leave
            raise Unfollowable(MORE_THAN_ONE_ROW) from error
        sign = next((sign for sign in _TOO_LARGE if sign in error.message), None)
        if sign is not None:
            raise Unfollowable(f"a value is too large for Spark ({sign})") from error
        if any(sign in error.message for sign in _OUT_OF_MEMORY):
            raise Unfollowable("Spark had too little memory for it") from error
        raise
