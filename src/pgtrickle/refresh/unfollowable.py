"""Values that only PostgreSQL can compute with, told apart from failures that may pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

import pyarrow as pa

from pgtrickle.model.errors import SparkCause, SparkFailed
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW
from pgtrickle.postgres.connection import DataError


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
        match error.cause:
            case SparkCause.MORE_THAN_ONE_ROW:
                # PostgreSQL asks a subquery only for rows that conditions, joins and limits leave
                raise Unfollowable(MORE_THAN_ONE_ROW) from error
            case SparkCause.VALUE_TOO_LARGE:
                raise Unfollowable(f"a value is too large for Spark ({error.condition})") from error
            case SparkCause.OUT_OF_MEMORY:
                raise Unfollowable("Spark had too little memory for it") from error
            case None:
                raise
            case _:
                assert_never(error.cause)
