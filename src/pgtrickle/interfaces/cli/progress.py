"""A progress line on the terminal; it prints nothing without a terminal."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pgtrickle.catalog.load_progress import CopyProgress, LoadProgress, reported_progress, rows_to_load
from pgtrickle.commands.connections import open_installed, stream_table_id
from pgtrickle.interfaces.cli.printing import errors
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.postgres.connection import Connection, DatabaseError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_POLL_SECONDS = 0.2


class ProgressLine:
    """Shows the current step and its duration, and for a load the rows that PostgreSQL has copied."""

    def __init__(self, step: str, dsn: str = "", loading: str | None = None) -> None:
        self._console = errors()
        self._step, self._dsn, self._loading = step, dsn, loading
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress = _progress_bar(self._console)
            self._task = self._progress.add_task(self._step, total=None, rows="")
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
        if self._progress is not None:
            self._progress.stop()

    def step(self, description: str) -> None:
        """Show a new step."""
        self._step = description
        self._update(description=description)

    def note(self, sentence: str) -> None:
        """Print a sentence above the line; also without a terminal."""
        self._console.print(sentence, style="dim", soft_wrap=True)

    def _update(self, **shown: Any) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **shown)

    def _watch(self) -> None:
        # an error here must not fail the command
        with suppress(PgTrickleError, DatabaseError), open_installed(self._dsn) as connection:
            table = stream_table_id(connection, self._loading or "")
            copied = CopyProgress(rows_to_load(connection, table))
            while not self._done.wait(_POLL_SECONDS):
                self._show_obstacle(connection)
                self._show(reported_progress(connection, table) or copied.poll(connection))

    def _show_obstacle(self, connection: Connection) -> None:
        row = connection.execute("select pgtrickle_internal.waits_for_spark()").fetchone()
        why = f": {row[0]}" if row and row[0] else ""
        self._update(description=f"{self._step}{why}")

    def _show(self, load: LoadProgress) -> None:
        """Update the bar. It fills while rows are read and pulses afterwards, when no count is available."""
        total = load.rows_expected if load.is_reading else None
        if load.rows_read:
            completed = min(load.rows_read, total or 0)
            self._update(total=total, completed=completed, rows=str(load))


def _progress_bar(console: Console) -> Progress:
    # imported here, because most commands end before anybody would see a bar
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
