"""Runs blocking commands in a few threads, so that neither the event loop nor the database is flooded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

from pgtrickle.model.errors import AnswerTimedOut, ServerBusy

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 4
MOST_WAITING: Final = 64
READ_SECONDS: Final = 30.0
WORK_SECONDS: Final = 120.0
LONG_SECONDS: Final = 3600.0


class CommandPool:
    """Threads for commands. Each command opens at most one connection at a time."""

    def __init__(self, name: str, seconds: float, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"http {name}")
        self._seconds, self._pending = seconds, 0

    async def run(self, command: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a command and return its result; raise if too many wait, or if it takes too long."""
        if self._pending >= MOST_WAITING:
            raise ServerBusy(
                f"{self._pending} commands are already running or waiting", hint="try again in a moment"
            )
        loop = asyncio.get_running_loop()
        self._pending += 1
        running = loop.run_in_executor(self._threads, lambda: command(*args, **kwargs))
        running.add_done_callback(self._note_done)
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._seconds)
        except TimeoutError:
            if running.done():
                raise
            raise AnswerTimedOut(
                f"the command still runs after {self._seconds:.0f} s", hint="look at the status later"
            ) from None

    def close(self) -> None:
        """Start nothing more. Commands that run end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _note_done(self, done: asyncio.Future[Any]) -> None:
        self._pending -= 1
        if not done.cancelled():
            # somebody has seen it, or has left
            done.exception()
