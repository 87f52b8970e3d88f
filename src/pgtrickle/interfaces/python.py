"""The Python interface to pgtrickle, with an engine in this process."""

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
    """All commands of pgtrickle for one database. Close it, or use it in a `with` statement."""

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
        """Close the engine, and stop Spark if it was started here."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def install(self) -> list[str]:
        """Install or upgrade pgtrickle in the database; return what was done. Safe to call again."""
        return install(self._dsn)

    def uninstall(self, *, drop_tables: bool = False) -> list[str]:
        """Remove pgtrickle from the database. Stream tables become ordinary tables unless dropped as well."""
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
        """Create a stream table. It is empty until its first refresh.

        Write names as in SQL: `sales`, `shop.sales`, `'"Sales 2025"'`.
        `schedule` is an interval (`"500ms"`, `"1s"`, `"1h30m"`), `"calculated"` (refresh whenever a source
        has changed), or None for manual refreshes only. `refresh_mode` is `"AUTO"`, `"DIFFERENTIAL"` (an
        error if the query cannot be maintained incrementally) or `"FULL"`. A refresh that takes longer than
        `refresh_timeout` (`"30s"`, `"5min"`, `"none"`) is cancelled. `on_divergence` is what happens to a
        stream table that does not hold the correct rows: `"repair"` (load it again) or `"stop"`.

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
        """Change the given options; None leaves a value unchanged. `schedule="manual"` removes the schedule.

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
        """Drop a stream table; with `cascade`, also everything that reads it."""
        define.drop(self._dsn, name, cascade=cascade)

    def resume_stream_table(self, name: str) -> None:
        """Resume a suspended or failed stream table."""
        define.resume(self._dsn, name)

    def repair(self, name: str | None = None) -> list[str]:
        """Repair one stream table, or everything in the database; return what was done.

        After a restore, a clone or an upgrade of the server, no refresh runs until you call this.
        """
        return repair(self._dsn, name)

    def gate_source(self, source: str) -> list[str]:
        """Pause every stream table that depends on a source, for example during a bulk load.

        Return their names.
        """
        return gate.gate(self._dsn, source)

    def ungate_source(self, source: str) -> None:
        """Let the stream tables that depend on a source be refreshed again."""
        gate.ungate(self._dsn, source)

    def drain(self, timeout_seconds: int = 60) -> None:
        """Let no refresh start and wait for the running ones; raise `Busy` if one runs past the timeout."""
        drain.drain(self._dsn, timeout_seconds)

    def undrain(self) -> None:
        """Let refreshes start again."""
        drain.undrain(self._dsn)

    def status(self, name: str) -> StreamTableStatus:
        """The status of one stream table: freshness, mode and its reason, last error."""
        return status.table_status(self._dsn, name)

    def history(self, name: str, limit: int = 20) -> list[PastRefresh]:
        """The latest refreshes of a stream table, newest first."""
        return status.history(self._dsn, name, limit)

    def refresh(self, name: str) -> RefreshOutcome:
        """Refresh a stream table now.

        outcome = trickle.refresh("sales")
        print(outcome.action, outcome.rows_inserted, outcome.rows_deleted, outcome.milliseconds)
        """
        from pgtrickle.commands.refresh import refresh

        return refresh(self.engine, name)

    def explain(self, name: str) -> Explanation:
        """Explain how a stream table is maintained: operators, delta rules, reads; if FULL, why. Print it."""
        from pgtrickle.commands.explain import explain

        return explain(self.engine, name)

    def verify(self, name: str | None = None, *, timeout: float = 3600.0) -> list[VerifiedTable]:
        """Compare with PostgreSQL's own result in one snapshot; raise `Diverged` with the rows that differ.

        A comparison that takes longer than `timeout` seconds is cancelled and raises `VerifyTimedOut`; 0 is
        no limit.
        """
        from pgtrickle.commands.verify import verify

        return verify(self.engine, name, timeout or None)

    def run(
        self, stop: threading.Event | None = None, on_event: Callable[[RefreshEvent], None] | None = None
    ) -> None:
        """Refresh all stream tables on their schedules until `stop` is set, or until Ctrl-C."""
        from pgtrickle.commands.run import run

        run(self.engine, stop or threading.Event(), on_event, self._settings)

    def clear_caches(self) -> int:
        """Make every sidecar recompile all queries; return how many compiled queries the catalog had."""
        return clear_caches(self._dsn)

    def cache_stats(self) -> list[CachedQueries]:
        """The compiled queries in the catalog, by the version of the code that can use them."""
        return cache_stats(self._dsn)

    @property
    def engine(self) -> Engine:
        """The engine that all refreshes of this process share. Spark starts when a refresh first needs it."""
        from pgtrickle.commands.engine import build_engine

        with self._opening:
            if self._engine is None:
                self._engine = build_engine(self._settings, self._start_spark)
            return self._engine

    def list(self) -> list[StreamTableStatus]:
        """The definition and status of all stream tables."""
        return status.table_statuses(self._dsn)
