"""Rows of a result as values, matched by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow, kwargs_row

Row = TypeVar("Row")


def rows_as(row: Callable[..., Row], result: psycopg.Cursor[TupleRow]) -> tuple[Row, ...]:
    """Every row of a result. `row` is a class or a function with a parameter for each column."""
    make: Callable[[Any], Row] = kwargs_row(row)(result)
    return tuple(make(values) for values in result)


def row_as(row: Callable[..., Row], result: psycopg.Cursor[TupleRow]) -> Row:
    """The only row of a result that always has one."""
    (found,) = rows_as(row, result)
    return found
