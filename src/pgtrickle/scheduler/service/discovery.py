"""Finds the databases of a server in which pgtrickle is installed, and notices those that come and go."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.catalog.install import is_installed_for
from pgtrickle.model.databases import DiscoveredServer, ServedDatabase
from pgtrickle.model.errors import ConnectionFailed, PgTrickleError, TooManyDatabases
from pgtrickle.postgres.addresses import with_parts
from pgtrickle.postgres.connection import Connection, DatabaseError, connect
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.service.fleet import Fleet
from pgtrickle.scheduler.service.unit_refresh import RefreshEvent, database_event

STEP_SECONDS: Final = 1.0
AT_A_TIME: Final = 10
"""How many databases without pgtrickle are asked in one step whether it has been installed."""
CONNECT_SECONDS: Final = 5


@dataclass(slots=True)
class Discovery:
    """Watches one server. `name_of` gives a database a name that is unique in the fleet."""

    server: DiscoveredServer
    fleet: Fleet
    name_of: Callable[[str], str]
    on_event: Callable[[RefreshEvent], None]
    _served: dict[str, str] = field(default_factory=dict)
    _others: deque[str] = field(default_factory=deque)
    _connection: Connection | None = None
    _told: set[str] = field(default_factory=set)

    def serve(self, stop: threading.Event) -> None:
        """Look for databases until stopped."""
        while not stop.is_set():
            began = time.monotonic()
            try:
                self.step()
                self._told.discard("server")
            except (PgTrickleError, DatabaseError) as error:
                self._close()
                self._tell_once(
                    "server", f"the databases of the server cannot be listed: {_first_line(error)}"
                )
            stop.wait(max(0.0, began + STEP_SECONDS - time.monotonic()))
        self._close()

    def step(self) -> None:
        """Serve what is new, let go what is gone, and ask some of the others."""
        present = self._present()
        gone = {member.database.name for member in self.fleet.members() if member.is_removed}
        for database, name in list(self._served.items()):
            if database not in present or name in gone:
                gone_from = "it is not on the server, or this role may no longer connect to it"
                why = gone_from if database not in present else "pgtrickle is no longer installed in it"
                del self._served[database]
                self.fleet.remove(name, why=f"no longer served: {why}")
        known = set(self._others)
        new = [database for database in present if database not in self._served and database not in known]
        self._others = deque(d for d in (*new, *self._others) if d in present and d not in self._served)
        for _ in range(min(AT_A_TIME, len(self._others))):
            database = self._others.popleft()
            if not self._try(database):
                self._others.append(database)

    def _present(self) -> list[str]:
        """The databases that this role may connect to."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(
                self.server.dsn, autocommit=True, application_name="pgtrickle discovery"
            )
        rows = self._connection.execute(load("pgtrickle.scheduler.service", "sql/databases.sql"))
        return [database for (database,) in rows if database not in self.server.exclude]

    def _try(self, database: str) -> bool:
        """Serve a database if pgtrickle is installed in it for this role."""
        dsn = with_parts(self.server.dsn, dbname=database)
        if self.fleet.serves(dsn):
            # it was given by its address
            return False
        try:
            is_ours = _is_ours(dsn)
        except (PgTrickleError, DatabaseError) as error:
            self._tell_once(database, f"it cannot be asked for pgtrickle: {_first_line(error)}", database)
            return False
        self._told.discard(database)
        if not is_ours:
            return False
        name = self.name_of(database)
        try:
            self.fleet.add(
                ServedDatabase(
                    name,
                    dsn,
                    self.server.quota,
                    pooler=self.server.pooler,
                    max_connections=self.server.max_connections,
                )
            )
        except TooManyDatabases as refusal:
            self._tell_once(f"limit {database}", refusal, database)
            return False
        self._served[database] = name
        note = "found on the server, and now served"
        self.on_event(database_event(note=note, database=name))
        return True

    def _tell_once(self, what: str, error: str | PgTrickleError, database: str | None = None) -> None:
        """Report a problem until it is over, once."""
        if what in self._told:
            return
        self._told.add(what)
        if isinstance(error, str):
            error = ConnectionFailed(error, hint="it is tried again")
        self.on_event(database_event(error=error, database=database))

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(DatabaseError):
                self._connection.close()
            self._connection = None


def _is_ours(dsn: str) -> bool:
    """Whether pgtrickle is installed in a database, and this role may serve it."""
    limited = with_parts(dsn, connect_timeout=CONNECT_SECONDS)
    with connect(limited, autocommit=True, application_name="pgtrickle discovery") as connection:
        return is_installed_for(connection)


def _first_line(error: Exception) -> str:
    text = error.message if isinstance(error, PgTrickleError) else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
