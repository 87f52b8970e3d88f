"""Reads each window of a database once, for all databases of this process that follow it.

In each database that is followed, one process holds the place of the broker, by a row there. It opens a
snapshot, and keeps it as long as a tick. Every reader that has not passed this snapshot takes its windows
from what the broker has read. Without the broker, if it fails or belongs to another process, a reader reads
for itself, in the same step and with the same result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import uuid4

from pgtrickle.capture.attached.origin import SAME_TEXTS, connect_to_origin, describe_origin
from pgtrickle.capture.attached.ticks import (
    Counters,
    FollowedServer,
    SharedOrigin,
    Tick,
    Unshared,
    Window,
)
from pgtrickle.changes.source_window import buffers
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import BrokerFull, PgTrickleError
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.copy_across import copy_out
from pgtrickle.postgres.locking import ACCESS_SHARE, lock_tables

__all__ = ["Broker", "Counters", "Unshared"]

TICK_SECONDS: Final = 0.5
"""The shortest time between two snapshots. A reader that has passed one waits for the next."""
KEPT_SECONDS: Final = 10.0
"""How long the windows of a snapshot are given to readers that have not passed it."""
LEASE_SECONDS: Final = 5.0
"""Another process takes the place of the broker if its holder was silent for this long."""
RENEW_SECONDS: Final = 1.0
MOST_BYTES: Final = 64 << 20
"""Larger windows are not kept; each reader reads them for itself."""


class Broker:
    """The broker of a process for every database that its databases follow. Safe to use from many threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._holder = str(uuid4())
        self._lock = threading.Lock()
        self._servers: dict[str, FollowedServer] = {}
        self._interest: dict[str, frozenset[int]] = {}
        self.counters = Counters()

    def register(self, reader: str, relations: frozenset[int]) -> None:
        """Note which tables a reader follows; raises if all readers together follow too many."""
        with self._lock:
            others = sum(len(known) for name, known in self._interest.items() if name != reader)
            if others + len(relations) > self._capacity:
                raise BrokerFull(
                    f"the broker already serves {others} pairs of a database and a table, and"
                    f" {len(relations)} more are over its limit of {self._capacity}",
                    hint="raise PGTRICKLE_BROKER_CAPACITY, or let another process serve some databases",
                )
            if relations:
                self._interest[reader] = relations
            else:
                self._interest.pop(reader, None)

    @property
    def pairs(self) -> int:
        """How many pairs of a database and a table are registered."""
        with self._lock:
            return sum(map(len, self._interest.values()))

    def open(self, dsn: str, database: AttachedDatabase, tables: Sequence[AttachedTable]) -> SharedOrigin:
        """The newest tick, for a reader of these tables; raises Unshared if it has to read for itself."""
        relations = frozenset(t.definition["relation"] for t in tables if t.definition is not None)
        self.register(database.reader, relations)
        if any(table.frontier is None for table in tables):
            raise Unshared
        with self._lock:
            server = self._servers.setdefault(dsn, FollowedServer(dsn=dsn))
        while True:
            with self._using(server) as connection:
                tick = self._tick(server, connection, tables)
                if not isinstance(tick, float):
                    kept = _kept(connection, database)
                    if not tick.is_open:
                        connection.rollback()
                    return SharedOrigin(self, server, tick, database, kept)
            time.sleep(tick)

    def rest(self) -> None:
        """End snapshots that nobody takes any more: an open one keeps the database from removing old rows."""
        with self._lock:
            servers = list(self._servers.values())
        for server in servers:
            tick = server.tick
            if tick is not None and tick.is_open and time.monotonic() - tick.opened_at > 2 * TICK_SECONDS:
                with suppress(Unshared), self._using(server) as connection:
                    tick.is_open = False
                    connection.rollback()
            if tick is not None and time.monotonic() - tick.opened_at > KEPT_SECONDS:
                server.tick = None

    def window(self, server: FollowedServer, tick: Tick, table: AttachedTable) -> Window:
        """The window of a table in a tick: read now, or by another reader before."""
        assert table.definition is not None
        relation = table.definition["relation"]
        with self._using(server) as connection:
            if relation in tick.windows:
                self.counters.shared += 1
            elif server.tick is not tick or not tick.is_open or relation not in tick.locked:
                raise Unshared
            else:
                tick.windows[relation] = self._read(connection, server, tick, table)
                self.counters.read += 1
            found = tick.windows[relation]
        assert table.frontier is not None
        if found is None or table.frontier.xmin < found.since or not set(table.wanted) <= set(found.names):
            raise Unshared
        return found

    def definition(self, server: FollowedServer, tick: Tick, table: AttachedTable) -> dict[str, Any] | None:
        """The definition of a table in a tick."""
        key = (table.schema, table.name)
        with self._using(server) as connection:
            if key not in tick.definitions:
                if server.tick is not tick or not tick.is_open:
                    raise Unshared
                tick.definitions[key] = describe_origin(connection, table)
            return tick.definitions[key]

    def leave(self, reader: str) -> None:
        """Forget a reader that follows nothing any more."""
        self.register(reader, frozenset())

    def close(self) -> None:
        """Give up the place of the broker everywhere, and close the connections."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            with server.lock, suppress(DatabaseError, PgTrickleError):
                if server.connection is not None and not server.connection.closed:
                    server.connection.rollback()
                    server.connection.execute(
                        "select pgtrickle_internal.leave_brokerage(%s)", (self._holder,)
                    )
                    server.connection.commit()
            _drop(server)

    @contextmanager
    def _using(self, server: FollowedServer) -> Iterator[Connection]:
        """The connection to a database, for one thread; any failure ends the tick."""
        with server.lock:
            try:
                if server.connection is None or server.connection.closed:
                    server.connection = connect_to_origin(server.dsn, "pgtrickle broker")
                    server.tick = None
                yield server.connection
            except (DatabaseError, PgTrickleError) as error:
                _drop(server)
                if isinstance(error, BrokerFull):
                    raise
                raise Unshared from error

    def _tick(
        self, server: FollowedServer, connection: Connection, tables: Sequence[AttachedTable]
    ) -> Tick | float:
        """The tick of now, or a new one, or after how many seconds to ask again."""
        tick = server.tick
        if tick is not None:
            age = time.monotonic() - tick.opened_at
            is_ahead = all(t.frontier is not None and not t.frontier.covers(tick.snapshot) for t in tables)
            if is_ahead and age < KEPT_SECONDS:
                return tick
            if age < TICK_SECONDS:
                # so that all share the next one, it is not opened early
                return TICK_SECONDS - age
        server.tick = None
        connection.rollback()
        self._claim(server, connection)
        rows = connection.execute("select distinct source_relid::bigint from pgtrickle.pgt_remote_readers")
        locked = frozenset(relation for (relation,) in rows)
        connection.commit()
        connection.execute(f"set transaction isolation level repeatable read; {SAME_TEXTS}")
        # buffers are truncated and altered, which does not keep old rows for old snapshots
        names = [name for relation in sorted(locked) for name in buffers(RelationId(relation))]
        if names:
            lock_tables(connection, names, ACCESS_SHARE)
        row = connection.execute(
            "select pg_current_snapshot()::text, now(), pgtrickle_internal.installation()"
        ).fetchone()
        assert row is not None
        server.ticks += 1
        place = row[2].split(" ")[2]
        server.tick = Tick(server.ticks, time.monotonic(), Frontier.parse(row[0]), row[1], place, locked)
        return server.tick

    def _claim(self, server: FollowedServer, connection: Connection) -> None:
        """Hold the place of the broker, or raise Unshared; from time to time, record what it did."""
        if time.monotonic() - server.renewed_at < RENEW_SECONDS:
            return
        sources = list(server.entries)
        counts = [server.entries[source] for source in sources]
        row = connection.execute(
            "select pgtrickle_internal.hold_brokerage(%s, %s, %s::bigint[], %s::bigint[], %s::bigint[],"
            " %s::bigint[])",
            (
                self._holder,
                f"{LEASE_SECONDS} seconds",
                sources,
                *([count[n] for count in counts] for n in range(3)),
            ),
        ).fetchone()
        connection.commit()
        if row is None or not row[0]:
            raise Unshared
        server.renewed_at = time.monotonic()
        server.entries.clear()

    def _read(
        self, connection: Connection, server: FollowedServer, tick: Tick, table: AttachedTable
    ) -> Window | None:
        """Read the window of a table since the oldest of all readers, with the columns of all of them."""
        assert table.definition is not None
        relation = table.definition["relation"]
        row = connection.execute(
            "select min(pg_snapshot_xmin(frontier)::text::bigint), count(*),"
            " array(select distinct c::text from pgtrickle.pgt_remote_readers o, unnest(o.columns) c"
            " where o.source_relid = %(id)s order by 1)"
            " from pgtrickle.pgt_remote_readers where source_relid = %(id)s and frontier is not null",
            {"id": relation},
        ).fetchone()
        if row is None or row[0] is None:
            return None
        numbers = {c["name"]: c["number"] for c in table.definition["columns"]}
        names = tuple(name for name in row[2] if name in numbers)
        columns = [sql.SQL(", {}").format(sql.Identifier(f"c{numbers[name]}")) for name in names]
        arms = [
            sql.SQL("select xid, weight{} from {} where xid >= {}::text::xid8").format(
                sql.SQL("").join(columns),
                sql.Identifier(buffer.schema, buffer.name),
                sql.Literal(str(row[0])),
            )
            for buffer in buffers(RelationId(relation))
        ]
        blocks: list[bytes] = []
        size = rows = 0
        for block in copy_out(connection, sql.SQL(" union all ").join(arms)):
            size += len(block)
            rows += 1
            if size <= MOST_BYTES:
                blocks.append(block)
        self.counters.bytes_read += size
        server.entries[relation] = (row[1], rows, tick.number)
        return Window(names, row[0], tuple(blocks), rows) if size <= MOST_BYTES else None


def _kept(connection: Connection, database: AttachedDatabase) -> dict[int, Frontier | None]:
    rows = connection.execute(
        "select source_relid::bigint, frontier::text from pgtrickle.pgt_remote_readers where reader = %s",
        (database.reader,),
    ).fetchall()
    return {relation: None if seen is None else Frontier.parse(seen) for relation, seen in rows}


def _drop(server: FollowedServer) -> None:
    connection, server.connection, server.tick = server.connection, None, None
    server.renewed_at = float("-inf")
    if connection is not None:
        with suppress(DatabaseError):
            connection.close()
