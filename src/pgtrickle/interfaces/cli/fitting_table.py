"""A table that breaks no value inside a word, however narrow the terminal is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_GAP = 3
"""The space between two columns."""


class FittingTable:
    """Rows side by side if their words fit into the width, else each row as a list of labels and values.

    Columns in `spare` are left out, in this order, until the others fit. A last line names them.
    """

    def __init__(self, *headers: str, right: Collection[str] = (), spare: Sequence[str] = ()) -> None:
        self._headers = headers
        self._right = right
        self._spare = spare
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row with a cell for each header. The first names the row and stays on one line."""
        self._rows.append(tuple(cell if isinstance(cell, Text) else Text(cell) for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Choose the layout that fits."""
        for count in range(len(self._spare) + 1):
            left_out = self._spare[:count]
            shown = [at for at, header in enumerate(self._headers) if header not in left_out]
            widths = self._widths(options.max_width, shown)
            if widths is not None:
                if self._needs_no_wrapping(widths, shown):
                    yield from self._lines(console, widths, shown)
                else:
                    yield self._table(widths, shown)
                if left_out:
                    yield Text(f"Too narrow for: {', '.join(left_out)}", style="dim")
                return
        yield from self._lists()

    def _widths(self, available: int, shown: Sequence[int]) -> list[int] | None:
        """The width of each shown column: at least its longest word. None if that is too much."""
        every = list(zip([Text(header) for header in self._headers], *self._rows, strict=True))
        columns = [every[at] for at in shown]
        most = [max(cell.cell_len for cell in column) for column in columns]
        widths = [most[0], *(max(map(_longest_word, column)) for column in columns[1:])]
        left = available - sum(widths) - _GAP * (len(columns) - 1)
        if left < 0:
            return None
        # columns that need little get all of it, the others share what is left
        by_need = sorted(range(len(columns)), key=lambda at: most[at] - widths[at])
        for position, at in enumerate(by_need):
            given = min(most[at] - widths[at], left // (len(columns) - position))
            widths[at] += given
            left -= given
        return widths

    def _needs_no_wrapping(self, widths: Sequence[int], shown: Sequence[int]) -> bool:
        return all(
            row[at].cell_len <= width and row[at].plain.isprintable()
            for row in self._rows
            for at, width in zip(shown, widths, strict=True)
        )

    def _lines(self, console: Console, widths: Sequence[int], shown: Sequence[int]) -> RenderResult:
        """The table that `_table` returns, which takes ten times as long for a thousand rows."""
        headers = [Text(header, style="bold") for header in self._headers]
        yield from self._line(console, headers, widths, shown)
        yield Segment("─" * (sum(widths) + _GAP * (len(widths) - 1)))
        yield Segment.line()
        for row in self._rows:
            yield from self._line(console, row, widths, shown)

    def _line(
        self, console: Console, cells: Sequence[Text], widths: Sequence[int], shown: Sequence[int]
    ) -> RenderResult:
        space = 0
        for at, width in zip(shown, widths, strict=True):
            cell = cells[at]
            missing = width - cell.cell_len
            is_right = self._headers[at] in self._right
            space += missing if is_right else 0
            if space:
                yield Segment(" " * space)
            if cell.spans:
                yield from cell.render(console)
            else:
                yield Segment(cell.plain, console.get_style(cell.style) if cell.style else None)
            space = _GAP + (0 if is_right else missing)
        yield Segment.line()

    def _table(self, widths: Sequence[int], shown: Sequence[int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for at, width in zip(shown, widths, strict=True):
            header = self._headers[at]
            table.add_column(header, width=width, justify="right" if header in self._right else "left")
        for row in self._rows:
            table.add_row(*(row[at] for at in shown))
        return table

    def _lists(self) -> RenderResult:
        for row in self._rows:
            name = row[0].copy()
            name.stylize("bold")
            yield name
            grid = Table.grid(padding=(0, 2))
            grid.add_column(style="dim", no_wrap=True)
            grid.add_column(overflow="fold")
            for header, cell in zip(self._headers[1:], row[1:], strict=True):
                grid.add_row(f"  {header}", cell)
            yield grid


def _longest_word(text: Text) -> int:
    return max(map(cell_len, text.plain.split()), default=0)
