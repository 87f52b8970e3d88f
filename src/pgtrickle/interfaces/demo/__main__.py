"""`make demo`: shows stream tables following a small shop, on an embedded PostgreSQL and a local Spark."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from pgtrickle.commands.status import read_table_statuses
from pgtrickle.embedded import embedded_server
from pgtrickle.interfaces.cli.error_reporting import CommandFailed, report_errors
from pgtrickle.interfaces.cli.printing import output
from pgtrickle.interfaces.connect import connect
from pgtrickle.interfaces.demo import screen
from pgtrickle.interfaces.demo.observations import RefreshLog, read_overview
from pgtrickle.interfaces.demo.shop import EXAMPLES, fill
from pgtrickle.interfaces.demo.sidecar import DEFAULT_ADDRESS, run_sidecar
from pgtrickle.interfaces.demo.writer import Writer
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import Status
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.connection import connect as connect_to

_REDRAW_SECONDS = 0.5
_LINE_SECONDS = 2.0
_POLL_SECONDS = 0.1

UNWATCHED_SECONDS = 60.0
"""How long it runs without a terminal, where nobody may be there to stop it."""

Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        min=1,
        help="Stop after this many seconds.",
        show_default=f"until Ctrl-C; {UNWATCHED_SECONDS:.0f} without a terminal",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", help="Start the random numbers here; another seed gives other customers.")
]

Http = Annotated[
    str, typer.Option("--http", metavar="ADDRESS", help="Serve the web page here; port 0 is any free port.")
]


def demo(seconds: Seconds = None, seed: Seed = 1, http: Http = DEFAULT_ADDRESS) -> None:
    """Show stream tables that stay up to date with a small shop.

    It starts a PostgreSQL and a Spark of its own.
    """
    if not output().is_terminal and seconds is None:
        seconds = UNWATCHED_SECONDS
        output().print(
            f"Without a terminal, this ends {seconds:.0f} s after the stream tables are loaded."
            " The option --seconds sets another time.",
            soft_wrap=True,
        )
    with ExitStack() as stack:
        trickle, dsn = _prepare(stack)
        stop, log = threading.Event(), RefreshLog()
        terminated = _stop_on_signals(stop)
        writer = Writer(dsn, stop, seed)
        connection = stack.enter_context(connect_to(dsn, autocommit=True, application_name="demo screen"))
        with run_sidecar(trickle, stop, log, http) as link:
            output().print(f"The page is at {link}", soft_wrap=True)
            try:
                with _step(f"Loading {len(EXAMPLES)} stream tables"):
                    _await_loaded(connection, stop)
                writer.start()
                _show(connection, log, writer, stop, seconds)
            finally:
                stop.set()
                writer.join()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if terminated.is_set():
            # the same signal may have ended Spark, so the comparison would fail
            raise typer.Exit(128 + signal.SIGTERM)
        if writer.failure is not None:
            raise writer.failure
        if not _summarise(trickle, connection, log):
            raise typer.Exit(1)
    output().print(next_steps(shutil.which("pgtrickle"), Path(sys.prefix), Path.cwd()), soft_wrap=True)


def next_steps(command: str | None, environment: Path, directory: Path) -> str:
    """How to go on with a database of one's own; `command` is where the shell finds pgtrickle, if it does."""
    steps = [
        "export PGTRICKLE_DSN=postgresql://you@localhost/your_database",
        "pgtrickle install",
        'pgtrickle create NAME --query "select …"',
        "pgtrickle run",
    ]
    if command is None:
        place = environment.relative_to(directory) if environment.is_relative_to(directory) else environment
        steps.insert(0, f". {shlex.quote(str(place))}/bin/activate")
    return "\n".join(["", "Next, try it with your own database:", "", *(f"    {step}" for step in steps)])


def _stop_on_signals(stop: threading.Event) -> threading.Event:
    """Set `stop` at Ctrl-C and SIGTERM; the returned event is set at SIGTERM only."""
    terminated = threading.Event()

    def handle(number: int, _: object) -> None:
        if number == signal.SIGTERM:
            terminated.set()
        stop.set()

    # after Spark has started, because PySpark installs its own SIGINT handler
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return terminated


def _prepare(stack: ExitStack) -> tuple[Trickle, str]:
    """Start the server and Spark, fill the shop and create the stream tables; the stack ends it all."""
    with _step("Starting PostgreSQL 18"):
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pgtrickle-demo-"))
        # PostgreSQL does not run as root, so its account must be able to enter the directory
        Path(directory).chmod(0o755)
        dsn = stack.enter_context(embedded_server(Path(directory)))
    with _step("Opening a shop"), connect_to(dsn) as connection:
        fill(connection)
    trickle = stack.enter_context(connect(dsn))
    with _step("Installing pgtrickle"):
        trickle.install()
    with _step(f"Creating {len(EXAMPLES)} stream tables"):
        for example in EXAMPLES:
            trickle.create_stream_table(example.name, example.query, example.schedule)
    with _step("Starting Spark"):
        _ = trickle.engine.spark
    return trickle, dsn


@contextmanager
def _step(what: str) -> Iterator[None]:
    began = time.monotonic()
    console = output()
    console.print(f"{what} …", end=" ")
    try:
        yield
    except BaseException:
        console.print()
        raise
    console.print(f"{time.monotonic() - began:.1f} s", style="dim")


def _await_loaded(connection: Connection, stop: threading.Event) -> None:
    """Wait until every stream table has been loaded or has failed."""
    while any(table.status is Status.INITIALIZING for table in read_table_statuses(connection)):
        if stop.wait(_POLL_SECONDS):
            return


def _show(
    connection: Connection, log: RefreshLog, writer: Writer, stop: threading.Event, seconds: float | None
) -> None:
    """Show the stream tables until `stop` is set or the time is up."""
    began = time.monotonic()
    end = began + seconds if seconds is not None else float("inf")
    console = output()
    if not console.is_terminal:
        while not stop.wait(min(_LINE_SECONDS, max(end - time.monotonic(), 0))):
            text = screen.line(read_overview(connection), log, writer.written, time.monotonic() - began)
            print(text, flush=True)
            if time.monotonic() >= end:
                return
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as display:
        while not stop.wait(_REDRAW_SECONDS) and time.monotonic() < end:
            now = time.monotonic() - began
            display.update(screen.live(read_overview(connection), log, writer.written, now), refresh=True)


def _summarise(trickle: Trickle, connection: Connection, log: RefreshLog) -> bool:
    """Compare every stream table with its query and print a summary; return whether all are equal."""
    verified: dict[str, bool] = {}
    problems = [f"{name}: {error}" for name, error in log.errors]
    for table in trickle.list():
        name = str(table.name)
        try:
            verified[name] = bool(trickle.verify(name))
        except PgTrickleError as error:
            verified[name] = False
            problems.append(f"{name}: {error}")
    console = output()
    console.print()
    console.print(screen.summary(read_overview(connection), log, verified))
    for problem in problems:
        console.print(problem, style="red", soft_wrap=True)
    if not problems and all(verified.values()):
        console.print(f"All {len(verified)} stream tables equal their queries.", style="green")
    return not problems and all(verified.values())


def main() -> int:
    """Run the demonstration and return its exit code."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    application.command()(demo)
    try:
        with report_errors(is_debugging=False):
            # typer returns the exit code that the command asked for
            return int(application(prog_name="demo", standalone_mode=False) or 0)
    except CommandFailed as failure:
        return failure.exit_code


if __name__ == "__main__":
    sys.exit(main())
