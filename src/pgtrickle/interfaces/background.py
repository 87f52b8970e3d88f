"""A sidecar in a thread of this process, and how a program waits for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, Self

from pgtrickle.interfaces.event_log import LOG
from pgtrickle.interfaces.http.fleet_server import FleetServer
from pgtrickle.interfaces.http.server import HttpServer, both
from pgtrickle.interfaces.http.web_server import WebServer
from pgtrickle.model.databases import Databases
from pgtrickle.model.errors import HttpUnavailable
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine

POLL_SECONDS: Final = 0.2
GRACE_SECONDS: Final = 10.0
"""How long canceled refreshes may take to end."""


class Abandonable(Protocol):
    """Something whose running refreshes can be given up: an engine, or a fleet of databases."""

    def abandon(self) -> None:
        """Give up what runs."""


def cancel_refreshes(running: Callable[[], Abandonable | None], thread: threading.Thread) -> None:
    """Make every running refresh of a sidecar fail, until its thread has ended or the grace is over.

    A refresh that is between two statements fails at its next statement.
    """
    deadline = time.monotonic() + GRACE_SECONDS
    while thread.is_alive() and time.monotonic() < deadline:
        if (found := running()) is not None:
            found.abandon()
        thread.join(POLL_SECONDS)


class BackgroundRun:
    """A sidecar that runs in a thread of this process. Stop it, or use it in a `with` statement."""

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        settings: Settings,
        stop: threading.Event,
        on_event: Callable[[RefreshEvent], None],
        on_failure: Callable[[BaseException], None],
        server: WebServer | None = None,
    ) -> None:
        self._server = server
        self._open_engine = open_engine
        self._settings = settings
        self._stop = stop
        self._on_event = on_event
        self._on_failure = on_failure
        self._cancel = threading.Event()
        self._running: Abandonable | None = None
        self._failure: BaseException | None = None
        # a daemon, because a program must be able to end even if a refresh hangs
        self._thread = threading.Thread(target=self._serve, name="pgtrickle sidecar", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._state()}>"

    @property
    def http_url(self) -> str | None:
        """The address of the web page; None without an HTTP server."""
        return None if self._server is None else self._server.url

    def login_link(self) -> str:
        """The address of the web page with a code that signs in once, within ten minutes."""
        if self._server is None:
            raise HttpUnavailable("this sidecar has no HTTP server", hint="give `run` an address: http=…")
        return self._server.login_link()

    @property
    def is_running(self) -> bool:
        """Whether the sidecar still runs. It ends by itself only if it fails."""
        return self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the sidecar has ended, for at most `timeout` seconds; return whether it has.

        If an error ended it, raise that error.
        """
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        return not self.is_running

    def stop(self) -> None:
        """Stop the sidecar. Running refreshes finish first.

        Refreshes that take longer than `stop_timeout`, a setting of `connect`, are canceled, which loses
        nothing. If an error has ended the sidecar, raise that error.
        """
        self.shut_down()
        self.wait(0)

    def shut_down(self) -> None:
        """Stop the sidecar without raising the error that may have ended it."""
        self._stop.set()
        deadline = time.monotonic() + self._settings.stop_timeout
        while self.is_running and time.monotonic() < deadline and not self._cancel.is_set():
            self._thread.join(POLL_SECONDS)
        cancel_refreshes(lambda: self._running, self._thread)

    def serve_until_stopped(self) -> None:
        """Wait until the sidecar is asked to stop, by Ctrl-C or otherwise, and has stopped."""
        with self._stop_on_interrupt():
            while self.is_running and not self._stop.is_set():
                self._thread.join(POLL_SECONDS)
            self.stop()

    @contextmanager
    def _stop_on_interrupt(self) -> Iterator[None]:
        """Let Ctrl-C stop the sidecar. PySpark's own handler would make running refreshes fail."""
        if threading.current_thread() is not threading.main_thread():
            # Ctrl-C never reaches this thread
            yield
            return
        previous = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous or signal.default_int_handler)

    def _interrupt(self, number: int, frame: object) -> None:
        if self._cancel.is_set():
            raise KeyboardInterrupt
        if self._stop.is_set():
            LOG.info("Cancelling the running refreshes.")
            self._cancel.set()
        else:
            LOG.info("Stopping after the running refreshes. Press Ctrl-C again to cancel them.")
            self._stop.set()

    def _serve(self) -> None:
        try:
            LOG.info("The sidecar is starting.")
            self._run()
            LOG.info("The sidecar has stopped.")
        except BaseException as failure:
            self._failure = failure
            self._on_failure(failure)
        finally:
            if self._server is not None:
                self._server.stop()

    def _state(self) -> str:
        if self._failure is not None:
            return f"failed: {self._failure}"
        if not self.is_running:
            return "stopped"
        return "stopping" if self._stop.is_set() else "running"

    def _run(self) -> None:
        """Serve until stopped."""
        from pgtrickle.commands.run import run

        self._running = engine = self._open_engine()
        server = self._server
        assert server is None or isinstance(server, HttpServer)
        if server is not None:
            LOG.info("The page is at %s", server.where())
            server.start(engine)
        watch = server.watch if server is not None else None
        run(engine, self._stop, both(self._on_event, server), self._settings, watch)


class FleetRun(BackgroundRun):
    """The same for several databases."""

    def __init__(
        self,
        start_spark: Callable[[], Spark],
        databases: Databases,
        settings: Settings,
        stop: threading.Event,
        on_event: Callable[[RefreshEvent], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._start_spark, self._databases = start_spark, databases
        server = FleetServer(settings) if settings.http is not None else None
        super().__init__(_no_engine, settings, stop, on_event, on_failure, server)

    def _run(self) -> None:
        from pgtrickle.commands.run_databases import build_fleet, run_databases
        from pgtrickle.pipeline.supply import SparkSupply

        supply, server = SparkSupply(self._start_spark), self._server
        assert server is None or isinstance(server, FleetServer)

        on_event = both(self._on_event, server)

        def check_spark() -> None:
            if supply.failed_start is not None:
                raise supply.failed_start

        self._running = fleet = build_fleet(self._settings, supply, on_event)
        if server is not None:
            LOG.info("The page is at %s", server.where())
            server.start(fleet)
        try:
            run_databases(fleet, self._databases, supply, self._stop, on_event, self._settings, check_spark)
        finally:
            fleet.release()
            supply.close()


def _no_engine() -> NoReturn:
    raise AssertionError("a fleet has an engine for each database")
