"""Results that people can read: one line, a text table, HTML for notebooks, or a pandas DataFrame."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload

from pgtrickle.model.names import RelationName

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS: Final = 60
"""How many records a printed table shows. The others are counted."""
WIDEST_CELL: Final = 60
_LEFT: Final = ' style="text-align: left"'


class Record:
    """A result with named fields. Its subclasses are frozen dataclasses with `repr=False`."""

    __slots__ = ()
    table_columns: ClassVar[tuple[str, ...]] = ()
    """The fields that `repr` and a printed table show; empty means all."""

    def __repr__(self) -> str:
        shown = shown_fields(type(self))
        parts = [f"{name}={_literal(getattr(self, name))}" for name in shown]
        if len(shown) < len(field_names(type(self))):
            parts.append("…")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __str__(self) -> str:
        rows = [(name, shown_text(getattr(self, name))) for name in field_names(type(self))]
        width = max(len(name) for name, _ in rows)
        indented = "\n" + " " * (width + 2)
        return "\n".join(
            f"{name:<{width}}  {text.replace(chr(10), indented)}".rstrip() for name, text in rows
        )

    def _repr_html_(self) -> str:
        """The record for a notebook: a row for each field."""
        rows = "".join(
            f"<tr><th{_LEFT}>{escape(name)}</th><td{_LEFT}>{_html(getattr(self, name))}</td></tr>"
            for name in field_names(type(self))
        )
        return f"<table><tbody>{rows}</tbody></table>"

    def to_pandas(self) -> DataFrame:
        """The record as a DataFrame with one row and a column for each field."""
        return Records(type(self), (self,)).to_pandas()


R_co = TypeVar("R_co", bound=Record, covariant=True)


class Records(Sequence[R_co], Generic[R_co]):
    """A list of results that does not change. It prints as a table; a slice of it is one too."""

    __slots__ = ("_kind", "_records")

    def __init__(self, kind: type[R_co], records: Sequence[R_co]) -> None:
        self._kind = kind
        self._records = tuple(records)

    @overload
    def __getitem__(self, index: int) -> R_co: ...

    @overload
    def __getitem__(self, index: slice) -> Records[R_co]: ...

    def __getitem__(self, index: int | slice) -> R_co | Records[R_co]:
        if isinstance(index, slice):
            return Records(self._kind, self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[R_co]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Records | list | tuple):
            return self._records == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._records)

    def __repr__(self) -> str:
        columns = shown_fields(self._kind)
        rows = [
            [_cell(getattr(record, column)) for column in columns] for record in self._records[:MOST_ROWS]
        ]
        widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
        lines = [_line(columns, widths), "  ".join("─" * width for width in widths)]
        return "\n".join([*lines, *(_line(row, widths) for row in rows), f"({self._count()})"])

    def _repr_html_(self) -> str:
        """The records for a notebook, as a table."""
        columns = shown_fields(self._kind)
        head = "".join(f"<th{_LEFT}>{escape(column)}</th>" for column in columns)
        rows = "".join(
            "<tr>"
            + "".join(f"<td{_LEFT}>{_html(getattr(record, column))}</td>" for column in columns)
            + "</tr>"
            for record in self._records[:MOST_ROWS]
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{escape(self._count())}</p>"

    def to_pandas(self) -> DataFrame:
        """The records as a DataFrame with all fields as columns. Times are in UTC, names and states text."""
        import pandas

        columns: dict[str, Any] = {}
        for field in _fields(self._kind):
            values = [_plain(getattr(record, field.name)) for record in self._records]
            is_time = "datetime" in str(field.type)
            columns[field.name] = (
                pandas.to_datetime(values, utc=True)
                if is_time
                else pandas.Series(values, dtype=_dtype(values))
            )
        return pandas.DataFrame(columns)

    def _count(self) -> str:
        count = len(self)
        text = f"{count:,} row" if count == 1 else f"{count:,} rows"
        return text if count <= MOST_ROWS else f"{text}, the first {MOST_ROWS} shown"


def field_names(kind: type[Record]) -> tuple[str, ...]:
    """The names of all fields."""
    return tuple(field.name for field in _fields(kind))


def shown_fields(kind: type[Record]) -> tuple[str, ...]:
    """The names of the fields that a table shows."""
    return kind.table_columns or field_names(kind)


def shown_text(value: object) -> str:
    """A value as people read it; None is empty."""
    match value:
        case None:
            return ""
        case Enum():
            return str(value.value)
        case datetime():
            return value.astimezone().isoformat(" ", "seconds")
        case float():
            return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"
        case Record():
            return repr(value)
        case Mapping():
            return ", ".join(f"{key}: {shown_text(part)}" for key, part in value.items())
        case list() | tuple():
            return ", ".join(map(shown_text, value))
        case _:
            return str(value)


def _fields(kind: type[Record]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)  # type: ignore[arg-type]


def _literal(value: object) -> str:
    """A value inside `repr`: text in quotes, numbers and truth values as they are."""
    if value is None or isinstance(value, bool | int):
        return repr(value)
    return shown_text(value) if isinstance(value, float | Record) else repr(_cell(value))


def _cell(value: object) -> str:
    """A value on one line, cut to a width that leaves room for others."""
    text = " ".join(shown_text(value).split())
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _html(value: object) -> str:
    return escape(shown_text(value)).replace("\n", "<br>")


def _plain(value: object) -> object:
    """A value as pandas stores it best."""
    match value:
        case Enum() | RelationName() | Record() | Exception():
            return shown_text(value)
        case datetime():
            return value.astimezone(UTC)
        case _:
            return value


def _dtype(values: Sequence[object]) -> str | None:
    """The type of a column. Lists, mappings, and columns without any value have none of their own."""
    is_typed = any(value is not None for value in values)
    return None if is_typed and not any(isinstance(v, list | tuple | Mapping) for v in values) else "object"
