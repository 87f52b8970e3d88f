"""What a refresh reads, counted from outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa

from pgtrickle.postgres.arrow import read_arrow

# as a refresh finds it, perhaps already wrapped by who measures time
_WINDOWS: Final = "pgtrickle.refresh.waves.pending_windows"


@dataclass(slots=True)
class Seen:
    """Rows that came from PostgreSQL, and rows of the windows that the refresh followed."""

    read: int = 0
    changed: int = 0


@contextmanager
def watched() -> Iterator[Seen]:
    """Counts while it is open; every module that reads has its own name for the one reading function."""
    seen, pending_windows = Seen(), resolve_name(_WINDOWS)

    def read(*args: Any, **kwargs: Any) -> pa.Table:
        table = read_arrow(*args, **kwargs)
        seen.read += table.num_rows
        return table

    def pending(*args: Any, **kwargs: Any) -> Any:
        windows = pending_windows(*args, **kwargs)
        seen.changed += sum(window.rows for part in windows for window in part)
        return windows

    with ExitStack() as stack:
        stack.enter_context(patch(_WINDOWS, new=pending))
        for name, module in list(sys.modules.items()):
            if name.startswith("pgtrickle.") and getattr(module, "read_arrow", None) is read_arrow:
                stack.enter_context(patch.object(module, "read_arrow", new=read))
        yield seen
