"""The Python interface to pgtrickle, with an engine in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pgtrickle.commands.databases import served_databases
from pgtrickle.interfaces.administration import Administration
from pgtrickle.interfaces.attached import Attached
from pgtrickle.interfaces.background import BackgroundRun, FleetRun
from pgtrickle.interfaces.definitions import Definitions
from pgtrickle.interfaces.downstream import Downstream
from pgtrickle.interfaces.event_log import LoggedEvents, log_failure, visible_log
from pgtrickle.interfaces.http.server import open_server
from pgtrickle.interfaces.monitoring import Monitoring
from pgtrickle.model.http_settings import HTTP
from pgtrickle.model.records import Records
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from pgtrickle.commands.definitions import PlannedChange
    from pgtrickle.commands.explain import Explanation
    from pgtrickle.commands.list_databases import DatabaseTables
    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.interfaces.ddl.execute import StatementResult
    from pgtrickle.model.changes import Preview
    from pgtrickle.model.comparison import VerifiedTable
    from pgtrickle.model.finding import Finding
    from pgtrickle.model.stream_table import RefreshOutcome
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine


def _ignore_failure(failure: BaseException) -> None:
    """Log nothing: `run` raises the failure."""


class Trickle(Definitions, Monitoring, Attached, Downstream, Administration):
    """All commands of pgtrickle for one database. Close it, or use it in a `with` statement.

    The methods have the names of the commands of `pgtrickle` on the command line. Those whose SQL function
    has another name have that name as well: `create_stream_table` is `create`, `gate_source` is `gate`.
    """

    def __init__(self, settings: Settings, start_spark: Callable[[], Spark]) -> None:
        super().__init__(settings.dsn)
        self._settings = settings
        self._start_spark = start_spark
        self._engine: Engine | None = None
        self._opening = threading.Lock()
        self._runs: list[BackgroundRun] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'with' if self._engine else 'without'} engine>"

    def doctor(self, *, start_spark: bool = False) -> Records[Finding]:
        """Check the installation: privileges, versions, triggers, poolers, Java, indexes and more.

        Each finding is OK, WARN, ERROR, or UNCHECKED with the reason, and says what to do. Nothing is
        changed. With `start_spark`, a Spark is started in this process to see whether it computes.

        >>> {finding.severity.value for finding in trickle.doctor() if finding.check == "triggers"}
        {'OK'}
        """
        from pgtrickle.commands.doctor import doctor
        from pgtrickle.model.finding import Finding

        return Records(Finding, doctor(self._settings, start_spark=start_spark))

    def refresh(self, name: str) -> RefreshOutcome:
        """Refresh a stream table now. A running sidecar does it; without one, this process does.

        >>> outcome = trickle.refresh("sales")
        >>> outcome.action, outcome.rows_inserted, outcome.rows_deleted
        (<Action.REINITIALIZE: 'REINITIALIZE'>, 2, 0)
        """
        from pgtrickle.commands.serving import refresh_served

        if (outcome := refresh_served(self._dsn, name)) is not None:
            return outcome
        from pgtrickle.commands.refresh import refresh

        return refresh(self.engine, name, self._settings.max_consecutive_errors)

    def list_all(self) -> Records[DatabaseTables]:
        """The stream tables of all databases: of the `config` of `connect`, or of the server with pgtrickle.

        >>> [(found.database, found.stream_tables) for found in trickle.list_all() if found.error is None]
        [...]
        """
        from pgtrickle.commands.list_databases import DatabaseTables, list_databases

        return Records(DatabaseTables, list_databases(self._settings, os.environ))

    def explain(self, name: str) -> Explanation:
        """Explain how a stream table is maintained: operators, delta rules, reads; if FULL, why.

        >>> trickle.explain("sales")
        stream table: public.sales
        ...
        """
        from pgtrickle.commands.explain import explain

        return explain(self.engine, name)

    def preview(self, name: str, *, max_rows: int = 100, timeout: float = 30.0) -> Preview:
        """What the next refresh of a stream table would do, without doing it: how, why, and which rows.

        The numbers of rows are exact; at most `max_rows` rows are returned, up to 1,000. A running sidecar
        computes it for the owner of the stream table; without one, this process does. After `timeout`
        seconds it is canceled and raises `PreviewTimedOut`. Meanwhile, a refresh of the stream table waits.

        >>> preview = trickle.preview("sales")
        >>> preview.action, preview.rows_inserted, preview.rows_deleted
        (<Action.NO_DATA: 'NO_DATA'>, 0, 0)
        """
        from pgtrickle.commands.serving import preview_served

        found = preview_served(self._dsn, name, timeout)
        if found is None:
            from pgtrickle.commands.preview import preview

            found = preview(self.engine, name, timeout)
        return found.first(max_rows)

    def verify(self, name: str | None = None, *, timeout: float = 3600.0) -> Records[VerifiedTable]:
        """Compare with PostgreSQL's own result in one snapshot; raise `Diverged` with the rows that differ.

        Without a name, compare all stream tables that have been loaded. A running sidecar compares those
        that you own; without one, this process compares. A comparison that takes longer than
        `timeout` seconds is canceled and raises `VerifyTimedOut`; 0 is no limit.

        >>> trickle.verify()
        name          rows  milliseconds
        ────────────  ────  ────────────
        public.sales  2     ...
        (1 row)
        """
        from pgtrickle.commands.serving import verify_served
        from pgtrickle.model.comparison import VerifiedTable

        found = verify_served(self._dsn, name, timeout or None)
        if found is None:
            from pgtrickle.commands.verify import verify

            found = verify(self.engine, name, timeout or None)
        return Records(VerifiedTable, found)

    def run(
        self,
        stop: threading.Event | None = None,
        on_event: Callable[[RefreshEvent], None] | None = None,
        *,
        http: str | None = None,
    ) -> None:
        """Be the sidecar: refresh all stream tables on their schedules until Ctrl-C or until `stop` is set.

        With `config` or `discover` of `connect`, all databases of the file or the server are served.

        Running refreshes finish first; a second Ctrl-C cancels them, which loses nothing. `on_event` is
        called with each refresh and each error, in the thread that did it. Without `on_event`, they are
        logged by the logger `pgtrickle`; if your program has not configured logging, the log goes to standard
        error. `http` is the address of the HTTP API and the web page, such as `"127.0.0.1:8432"`; without it,
        that of `connect` counts.

        >>> stop = threading.Event()
        >>> threading.Timer(2, stop.set).start()
        >>> trickle.run(stop)
        """
        shown = visible_log(self._settings.log_level, self._settings.log_format)
        with shown if on_event is None else nullcontext():
            self._start(stop or threading.Event(), on_event, _ignore_failure, http).serve_until_stopped()

    def run_in_background(
        self, on_event: Callable[[RefreshEvent], None] | None = None, *, http: str | None = None
    ) -> BackgroundRun:
        """Be the sidecar in a thread of this process, and return at once.

        Events are passed to `on_event` or logged, as by `run`; nothing else is shown. `close` stops the
        sidecar, and so does the end of a `with` statement. With `http`, as for `run`, `http_url` is the
        address of the web page, and `login_link()` makes a link that signs in.

        >>> with trickle.run_in_background() as sidecar:
        ...     print(sidecar)
        <BackgroundRun running>
        """
        return self._start(threading.Event(), on_event, log_failure, http)

    def _start(
        self,
        stop: threading.Event,
        on_event: Callable[[RefreshEvent], None] | None,
        on_failure: Callable[[BaseException], None],
        http: str | None,
    ) -> BackgroundRun:
        tell = on_event or LoggedEvents()
        settings = self._settings if http is None else replace(self._settings, http=HTTP.value(http))
        databases = served_databases(settings, (), os.environ)
        if databases.is_single:
            server = open_server(settings)
            run = BackgroundRun(lambda: self.engine, settings, stop, tell, on_failure, server)
        else:
            run = FleetRun(self._start_spark, databases, settings, stop, tell, on_failure)
        self._runs = [*(other for other in self._runs if other.is_running), run]
        return run

    def sql(self, statements: str) -> Records[StatementResult]:
        """Run statements about stream tables, written like SQL, with semicolons between them.

        The statements are CREATE, CREATE OR REPLACE, ALTER, DROP and REFRESH STREAM TABLE. Each commits by
        itself. The first that fails raises its error, and the rest is not run.

        >>> done = trickle.sql("create stream table big as select * from orders; refresh stream table big")
        >>> [result.statement for result in done]
        ['create', 'refresh']
        >>> done = trickle.sql("drop stream table big; drop stream table if exists small")
        """
        from pgtrickle.interfaces.cli.refresh import outcome_sentence
        from pgtrickle.interfaces.ddl.execute import StatementResult, execute
        from pgtrickle.interfaces.ddl.parser import parse

        results = execute(self._dsn, parse(statements), lambda name: outcome_sentence(self.refresh(name)))
        return Records(StatementResult, list(results))

    def export(self, names: Sequence[str] = ()) -> str:
        """The definitions of stream tables as a text that `apply` takes; without names, of all of them.

        >>> print(trickle.export(["sales"]))
        CREATE STREAM TABLE public.sales ...
        """
        from pgtrickle.commands.definitions import export

        return export(self._dsn, names)

    def apply(
        self, definitions: str | Path, *, set_name: str | None = None, dry_run: bool = False
    ) -> Records[PlannedChange]:
        """Create, alter and drop stream tables to match definitions, all or nothing; return what was done.

        `definitions` is a text of CREATE STREAM TABLE statements, or the path of a file with them. An option
        that a definition does not give gets its default. With `set_name`, stream tables that an earlier
        `apply` of that set created and that the definitions no longer have are dropped; without it, nothing
        is dropped. With `dry_run`, nothing is changed.

        >>> text = trickle.export()
        >>> [change.action.value for change in trickle.apply(text)]
        ['none']
        """
        from pgtrickle.commands.definitions import PlannedChange, apply, plan
        from pgtrickle.interfaces.ddl.definition_files import read_definitions

        given = definitions.read_text(encoding="utf-8") if isinstance(definitions, Path) else definitions
        file = read_definitions(given)
        done = plan(self._dsn, file, set_name) if dry_run else apply(self._dsn, file, set_name)
        return Records(PlannedChange, done)

    def close(self) -> None:
        """Stop what runs in the background, close the engine, and stop Spark if it was started here."""
        for run in self._runs:
            run.shut_down()
        self._runs = []
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    @property
    def engine(self) -> Engine:
        """The engine that all refreshes of this process share. Spark starts when a refresh first needs it."""
        from pgtrickle.commands.engine import build_engine

        with self._opening:
            if self._engine is None:
                self._engine = build_engine(self._settings, self._start_spark)
            return self._engine

    # last, because it hides the type of that name from the annotations below it
