"""A progress line on the terminal; it prints nothing without a terminal."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pgtrickle.commands.load_progress import CopyProgress, rows_to_load
from pgtrickle.interfaces.cli.formatting import count
from pgtrickle.interfaces.cli.printing import errors
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.postgres.connection import DatabaseError, connect

_POLL_SECONDS = 0.2


class ProgressLine:
    """Shows the current step and its duration, and for a load the rows that PostgreSQL has copied."""

    def __init__(self, step: str, dsn: str = "", loading: str | None = None) -> None:
        self._console = errors()
        self._dsn, self._loading = dsn, loading
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[rows]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task(step, total=None, rows="")
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress.start()
            if self._loading is not None:
                self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._watcher.is_alive():
            self._watcher.join()
        if self._console.is_terminal:
            self._progress.stop()

    def step(self, description: str) -> None:
        """Show a new step."""
        self._progress.update(self._task, description=description)

    def _watch(self) -> None:
        # an error here must not fail the command
        with suppress(PgTrickleError, DatabaseError), connect(self._dsn, autocommit=True) as connection:
            total = rows_to_load(connection, self._loading or "")
            copied = CopyProgress()
            while not self._done.wait(_POLL_SECONDS):
                copied.poll(connection)
                self._show(copied, total)

    def _show(self, copied: CopyProgress, total: int | None) -> None:
        """Update the bar. It fills while rows are read and pulses afterwards, when no count is available."""
        read = count(copied.read)
        rows = f"{read} of about {count(total)} rows read" if total else f"{read} rows read"
        if copied.staged:
            rows += f", {count(copied.staged)} staged"
        if copied.is_copying:
            self._progress.update(self._task, total=total, completed=min(copied.read, total or 0), rows=rows)
        elif copied.read:
            self._progress.update(self._task, total=None, rows="all rows read, computing")
