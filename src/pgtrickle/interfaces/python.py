"""The Python interface: everything that can be asked of pgtrickle, by an engine in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pgtrickle.commands import define, drain, gate, status
from pgtrickle.commands.caches import CachedQueries, cache_stats, clear_caches
from pgtrickle.commands.install import install, uninstall
from pgtrickle.commands.repair import repair
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from pgtrickle.commands.explain import Explanation
    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.commands.status import PastRefresh, StreamTableStatus
    from pgtrickle.commands.verify import VerifiedTable
    from pgtrickle.model.stream_table import RefreshOutcome
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine


class Trickle:
    """Everything that can be asked of pgtrickle in one database. Close it, or use it in a `with`."""

    def __init__(self, settings: Settings, start_spark: Callable[[], Spark]) -> None:
        self._settings = settings
        self._dsn = settings.dsn
        self._start_spark = start_spark
        self._engine: Engine | None = None
        self._opening = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'with' if self._engine else 'without'} engine>"

    def close(self) -> None:
        """Stop the Spark that was started here, if any."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def install(self) -> list[str]:
        """Create or upgrade what pgtrickle keeps in the database; tells what was done. Again is harmless."""
        return install(self._dsn)

    def uninstall(self, *, drop_tables: bool = False) -> list[str]:
        """Remove everything of pgtrickle; stream tables stay as ordinary tables unless `drop_tables`."""
        return uninstall(self._dsn, drop_tables=drop_tables)

    def create_stream_table(
        self,
        name: str,
        query: str,
        schedule: str | None = "calculated",
        refresh_mode: str = "AUTO",
        *,
        initialize: bool = True,
        diamond_consistency: str | None = None,
        diamond_schedule_policy: str | None = None,
        cdc_mode: str | None = None,
        append_only: bool = False,
        pooler_compatibility_mode: bool = False,
        tier: str | None = None,
        refresh_timeout: str | None = None,
        on_divergence: str | None = None,
    ) -> None:
        """Create a table that follows its query. It is empty until its first refresh.

        Names are written as in SQL: `sales`, `shop.sales`, `'"Sales 2025"'`.
        `schedule` is an interval (`"500ms"`, `"1s"`, `"1h30m"`), `"calculated"` (whenever a source has
        changed), or None for refreshes by hand only. `refresh_mode` is `"AUTO"`, `"DIFFERENTIAL"`
        (refused if the query cannot be followed incrementally) or `"FULL"`. A refresh that takes longer than
        `refresh_timeout` (`"30s"`, `"5min"`, `"none"`) is cancelled. `on_divergence` is `"repair"` (a stream
        table that does not hold the rows it should hold is loaded anew) or `"stop"`.

            trickle.create_stream_table("sales", "select region, count(*) from orders group by region", "1s")
        """
        options: define.Options = {
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "initialize": initialize,
            "diamond_consistency": diamond_consistency,
            "diamond_schedule_policy": diamond_schedule_policy,
            "cdc_mode": cdc_mode,
            "append_only": append_only,
            "pooler_compatibility_mode": pooler_compatibility_mode,
            "tier": tier,
            "refresh_timeout": refresh_timeout,
            "on_divergence": on_divergence,
        }
        define.create(self._dsn, name, query, options)

    def alter_stream_table(
        self,
        name: str,
        *,
        query: str | None = None,
        schedule: str | None = None,
        refresh_mode: str | None = None,
        status: str | None = None,
        cdc_mode: str | None = None,
        append_only: bool | None = None,
        pooler_compatibility_mode: bool | None = None,
        tier: str | None = None,
        diamond_consistency: str | None = None,
        diamond_schedule_policy: str | None = None,
        refresh_timeout: str | None = None,
        on_divergence: str | None = None,
    ) -> None:
        """Change what is given; None leaves a value as it is. `schedule="manual"` ends a schedule.

        trickle.alter_stream_table("sales", schedule="5m")
        """
        options: define.Options = {
            "query": query,
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "status": status,
            "cdc_mode": cdc_mode,
            "append_only": append_only,
            "pooler_compatibility_mode": pooler_compatibility_mode,
            "tier": tier,
            "diamond_consistency": diamond_consistency,
            "diamond_schedule_policy": diamond_schedule_policy,
            "refresh_timeout": refresh_timeout,
            "on_divergence": on_divergence,
        }
        define.alter(self._dsn, name, options)

    def drop_stream_table(self, name: str, cascade: bool = False) -> None:
        """Drop a stream table; with `cascade`, whatever reads it as well."""
        define.drop(self._dsn, name, cascade=cascade)

    def resume_stream_table(self, name: str) -> None:
        """Let a suspended or failed stream table go on."""
        define.resume(self._dsn, name)

    def repair(self, name: str | None = None) -> list[str]:
        """Repair one stream table, or everything in the database; says what was done.

        After a restore, a clone or an upgrade of the server, nothing is refreshed before this was called.
        """
        return repair(self._dsn, name)

    def gate_source(self, source: str) -> list[str]:
        """Let all that depends on a source wait while it is loaded; the stream tables that do."""
        return gate.gate(self._dsn, source)

    def ungate_source(self, source: str) -> None:
        """Let all that depends on a source go on."""
        gate.ungate(self._dsn, source)

    def drain(self, timeout_seconds: int = 60) -> None:
        """Let no refresh start any more, and wait until none runs; raises `Busy` if one still does."""
        drain.drain(self._dsn, timeout_seconds)

    def undrain(self) -> None:
        """Let refreshes start again."""
        drain.undrain(self._dsn)

    def status(self, name: str) -> StreamTableStatus:
        """How one stream table stands: freshness, mode and why, last error."""
        return status.table_status(self._dsn, name)

    def history(self, name: str, limit: int = 20) -> list[PastRefresh]:
        """The latest refreshes of a stream table, newest first."""
        return status.history(self._dsn, name, limit)

    def refresh(self, name: str) -> RefreshOutcome:
        """Bring a stream table up to this moment.

        outcome = trickle.refresh("sales")
        print(outcome.action, outcome.rows_inserted, outcome.rows_deleted, outcome.milliseconds)
        """
        from pgtrickle.commands.refresh import refresh

        return refresh(self.engine, name)

    def explain(self, name: str) -> Explanation:
        """How a stream table is kept: operators, delta rules, what is read, and if FULL, why. Print it."""
        from pgtrickle.commands.explain import explain

        return explain(self.engine, name)

    def verify(self, name: str | None = None, *, timeout: float = 3600.0) -> list[VerifiedTable]:
        """Compare with PostgreSQL's own answer at one moment; raises `Diverged` with rows that differ.

        The comparison of each stream table may take `timeout` seconds, 0 is any; then it is cancelled, and
        `VerifyTimedOut` raised.
        """
        from pgtrickle.commands.verify import verify

        return verify(self.engine, name, timeout or None)

    def run(
        self, stop: threading.Event | None = None, on_event: Callable[[RefreshEvent], None] | None = None
    ) -> None:
        """Serve the schedules until `stop` is set, or until Ctrl-C."""
        from pgtrickle.commands.run import run

        run(self.engine, stop or threading.Event(), on_event, self._settings)

    def clear_caches(self) -> int:
        """Have every sidecar compile every query anew; how many compiled ones the catalog had."""
        return clear_caches(self._dsn)

    def cache_stats(self) -> list[CachedQueries]:
        """What the catalog holds of compiled queries, by the version of the code that can use them."""
        return cache_stats(self._dsn)

    @property
    def engine(self) -> Engine:
        """What refreshes share in this process; Spark starts with the first that needs it."""
        from pgtrickle.commands.engine import build_engine

        with self._opening:
            if self._engine is None:
                self._engine = build_engine(self._settings, self._start_spark)
            return self._engine

    def list(self) -> list[StreamTableStatus]:
        """All stream tables: what was asked for, and how they stand."""
        return status.table_statuses(self._dsn)
