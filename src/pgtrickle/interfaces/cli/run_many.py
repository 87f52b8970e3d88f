"""`run` for several databases."""

from __future__ import annotations

import threading
from typing import Final

from pgtrickle.interfaces.background import GRACE_SECONDS
from pgtrickle.interfaces.cli.http_server import open_fleet_server
from pgtrickle.interfaces.cli.log_lines import SidecarLog
from pgtrickle.interfaces.cli.spark_start import SparkStart, stop_on_signals
from pgtrickle.interfaces.http.server import both
from pgtrickle.model.databases import Databases
from pgtrickle.model.settings import LogLevel, Settings

MOST_NAMED: Final = 5


def serve_many(settings: Settings, databases: Databases, start: SparkStart, log: SidecarLog) -> None:
    """Serve the databases until a signal arrives. One that cannot be served is reported and tried again."""
    from pgtrickle.commands.run_databases import build_fleet, run_databases
    from pgtrickle.pipeline.supply import SparkSupply

    log.announce(f"Serving {_what(databases)}. Press Ctrl-C to stop.")
    supply, stop = SparkSupply(start), threading.Event()
    server = open_fleet_server(settings, log)
    on_event = both(log, server)
    fleet = build_fleet(settings, supply, on_event)

    def check_spark() -> None:
        if supply.failed_start is not None and not start.is_ready:
            raise supply.failed_start

    stop_on_signals(stop, start, log)
    if server is not None:
        server.start(fleet)
    try:
        if not run_databases(fleet, databases, supply, stop, on_event, settings, check_spark):
            log.announce(
                f"Cancelling the refreshes that still run after {settings.stop_timeout:g} s.",
                LogLevel.WARNING,
            )
            fleet.abandon()
            fleet.close(GRACE_SECONDS)
    finally:
        if server is not None:
            server.stop()
        fleet.release()
        supply.close()


def _what(databases: Databases) -> str:
    """The databases in words."""
    names = [database.name for database in databases.databases]
    parts = []
    if names:
        shown = ", ".join(names[:MOST_NAMED])
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        parts.append(f"{len(names)} database{'' if len(names) == 1 else 's'} ({shown}{more})")
    if databases.servers:
        count = len(databases.servers)
        parts.append(f"every database with pgtrickle of {count} server{'' if count == 1 else 's'}")
    return " and ".join(parts)
