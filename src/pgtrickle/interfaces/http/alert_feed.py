"""Which of the alerts that the database keeps are new."""

from __future__ import annotations

from datetime import datetime

from pgtrickle.commands.alerts import OVERLAP, Alert, read_alerts
from pgtrickle.postgres.connection import Connection


class AlertFeed:
    """Reads alerts from where they were read last. Those of before the first read count as known."""

    def __init__(self) -> None:
        self._known: dict[str, datetime] = {}
        self._since: datetime | None = None

    def new_alerts(self, connection: Connection) -> list[Alert]:
        """The alerts that have not been reported yet, oldest first."""
        is_first = self._since is None
        found = read_alerts(connection, self._since)
        new = [alert for alert in found if alert.alert_id not in self._known]
        self._known |= {alert.alert_id: alert.at for alert in new}
        row = connection.execute("select clock_timestamp()").fetchone()
        assert row is not None
        # an alert becomes visible only when its transaction commits
        start: datetime = row[0] - OVERLAP
        self._since = start
        self._known = {number: at for number, at in self._known.items() if at >= start}
        return [] if is_first else new
