"""The sidecar of the demonstration, with its web page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pgtrickle.interfaces.background import BackgroundRun
from pgtrickle.interfaces.demo.observations import RefreshLog
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.errors import HttpUnavailable

DEFAULT_ADDRESS: Final = "127.0.0.1:8432"


@contextmanager
def run_sidecar(trickle: Trickle, stop: threading.Event, log: RefreshLog, http: str) -> Iterator[str]:
    """Run the sidecar in a thread until the block ends; gives a link to the web page that signs in.

    If the sidecar fails, `stop` is set, and its error is raised at the end.
    """
    with _start_sidecar(trickle, log, http) as sidecar:
        watcher = threading.Thread(target=_stop_with, args=(sidecar, stop), name="demo watcher", daemon=True)
        watcher.start()
        yield sidecar.login_link()


def _start_sidecar(trickle: Trickle, log: RefreshLog, http: str) -> BackgroundRun:
    try:
        return trickle.run_in_background(log.record, http=http)
    except HttpUnavailable:
        if http != DEFAULT_ADDRESS:
            raise
        # another demonstration runs; the page is printed with whatever port it gets
        return trickle.run_in_background(log.record, http="127.0.0.1:0")


def _stop_with(sidecar: BackgroundRun, stop: threading.Event) -> None:
    with suppress(BaseException):
        sidecar.wait()
    stop.set()
