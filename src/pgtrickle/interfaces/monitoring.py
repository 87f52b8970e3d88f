"""The methods of `Trickle` that show what stream tables and sidecars do: status, history, alerts, changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, overload

from pgtrickle.commands import alerts, changes, monitoring, status
from pgtrickle.commands.alerts import Alert
from pgtrickle.commands.caches import CachedQueries, cache_stats
from pgtrickle.commands.changes import Since
from pgtrickle.commands.monitoring import HealthCheck
from pgtrickle.commands.status import PastRefresh, Sidecar, StreamTableStatus
from pgtrickle.commands.top import Activity, top
from pgtrickle.model.records import Records

if TYPE_CHECKING:
    from pgtrickle.model.changes import Change


class Monitoring:
    """Everything that only looks, and needs no engine."""

    _dsn: str

    @overload
    def status(self) -> Records[StreamTableStatus]: ...

    @overload
    def status(self, name: str) -> StreamTableStatus: ...

    def status(self, name: str | None = None) -> StreamTableStatus | Records[StreamTableStatus]:
        """The status of one stream table, or of all: freshness, mode and its reason, last error.

        >>> trickle.status("sales").is_populated
        True
        >>> trickle.status().to_pandas()[["name", "status"]]
                  name  status
        0  public.sales  ACTIVE
        """
        if name is None:
            return self.list()
        return status.table_status(self._dsn, name)

    def history(self, name: str, limit: int = 20) -> Records[PastRefresh]:
        """The latest refreshes of a stream table, newest first.

        >>> [(past.action.value, past.rows_inserted) for past in trickle.history("sales", limit=1)]
        [('REINITIALIZE', 2)]
        """
        return Records(PastRefresh, status.history(self._dsn, name, limit))

    def sidecars(self) -> Records[Sidecar]:
        """The sidecars that serve this database, oldest first, as of their last reports."""
        return Records(Sidecar, status.sidecars(self._dsn))

    def timeline(self, limit: int = 50) -> Records[PastRefresh]:
        """The latest refreshes of all stream tables, newest first."""
        return Records(PastRefresh, monitoring.timeline(self._dsn, limit))

    def health(self) -> Records[HealthCheck]:
        """Checks of the whole installation: sidecars, failures, staleness, capture, workers.

        >>> [check.name for check in trickle.health()][0]
        'scheduler_running'
        """
        return Records(HealthCheck, monitoring.health(self._dsn))

    def alerts(self, since: datetime | str | None = None) -> Records[Alert]:
        """The alerts since a moment, oldest first; without one, those of the last hour.

        `since` is a moment, or a text such as `"2h"` or `"2026-05-01 12:00"`.

        >>> found = trickle.alerts(since="10min")
        """
        return Records(Alert, alerts.alerts(self._dsn, self._moment(since)))

    def follow_alerts(self, since: datetime | str | None = None) -> Iterator[Alert]:
        """The alerts since a moment and then each new one, by polling. Without a moment, only new ones."""
        return alerts.follow_alerts(self._dsn, self._moment(since))

    def _moment(self, since: datetime | str | None) -> datetime | None:
        return alerts.moment(self._dsn, since) if isinstance(since, str) else since

    def top(self, sort: str = "problems", pattern: str | None = None) -> Activity:
        """What all stream tables and sidecars are doing now: the screen of `pgtrickle top` as a value.

        `sort` is `problems`, `name`, `staleness`, `refreshes`, `duration` or `last`. With `pattern`, only
        stream tables whose name contains this text.

        >>> [(str(table.name), table.state.value) for table in trickle.top().tables]
        [('public.sales', 'waiting')]
        """
        return top(self._dsn, sort, pattern)

    def changes(self, name: str, since: Since = None, *, follow: bool = False) -> Iterator[Change]:
        """The rows that refreshes inserted into a stream table and deleted from it, in order.

        `since` is the point of the last change that you have seen, `"now"` for what is still to come, or None
        for everything that is kept. Each change comes exactly once. If the changes after that point are no
        longer kept, raise `ChangesGone`. With `follow`, wait for further changes, without an end.

        >>> done = trickle.alter("sales", keep_changes="1d")
        >>> for change in trickle.changes("sales"):
        ...     print(change.point, change.change.value, change.count, change.data)
        """
        return changes.changes(self._dsn, name, since, follow=follow)

    def change_point(self, name: str) -> int:
        """The newest point in the changes of a stream table, to begin from."""
        return changes.change_point(self._dsn, name)

    def cache_stats(self) -> Records[CachedQueries]:
        """The compiled queries in the catalog, by the version of the code that can use them."""
        return Records(CachedQueries, cache_stats(self._dsn))

    # last, because it hides the type of that name from the annotations below it
    def list(self) -> Records[StreamTableStatus]:
        """The definition and status of all stream tables.

        >>> [(str(table.name), table.schedule, table.sources) for table in trickle.list()]
        [('public.sales', '1s', ('public.orders',))]
        """
        return Records(StreamTableStatus, status.table_statuses(self._dsn))
