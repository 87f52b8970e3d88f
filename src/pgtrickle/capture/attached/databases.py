"""The attached databases of one database: whether they have news, and who follows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pgtrickle.capture.attached.broker import Broker, Counters, Unshared
from pgtrickle.capture.attached.following import Following
from pgtrickle.capture.attached.foreign_origins import adopt_declared_origins, adopt_foreign_origins
from pgtrickle.capture.attached.log.fitting import with_obstacle
from pgtrickle.capture.attached.log.following import LogFollowing
from pgtrickle.capture.attached.log.server import describe_logged, drop_slot, log_state, slot_lag
from pgtrickle.capture.attached.origin import Misfit, describe_origin, problem_with
from pgtrickle.capture.attached.places import Place, Places, Resolve, not_followed
from pgtrickle.capture.attached.receiving import Followed
from pgtrickle.capture.attached.tables import (
    aliases_of,
    attached_databases,
    attached_tables,
    read_aliases,
)
from pgtrickle.capture.wal.slot import START, Lsn, SlotState
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.databases import DeclaredOrigin
from pgtrickle.model.errors import AttachedFailed, Busy, PgTrickleError
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.pool import Pool

ATTEMPTS: Final = 3
"""How often to start over because tables were altered meanwhile."""
WAIT_SECONDS: Final = 15.0
"""How long to leave it at decoding, if running transactions prevent a snapshot."""
DESCRIBE_SECONDS: Final = 2.0
"""How often to look whether tables of an attached database were altered."""
HEARTBEAT_SECONDS: Final = 3600.0
"""How often to follow a database in which nothing happens, so that it does not forget us."""
LEFT_ALONE_SECONDS: Final = 3600.0
"""How long a table that differs from its origin is not tried again: its readers would be loaded twice."""


class AttachedDatabases:
    """Follows what is attached to one database. Safe to use from many threads."""

    def __init__(
        self, pool: Pool, resolve: Resolve = lambda reference: None, broker: Broker | None = None
    ) -> None:
        self._pool, self.resolve, self.broker = pool, resolve, broker
        self.served: Callable[[], Mapping[str, str]] = dict
        """The addresses of the databases that the process serves, by name."""
        self.origins: tuple[DeclaredOrigin, ...] = ()
        self._released: dict[int, float] = {}
        self.counters = Counters()
        """What was read here without the broker."""
        self._places = Places(lambda reference: self.resolve(reference))

    def list(self) -> tuple[AttachedDatabase, ...]:
        """The databases that are attached now."""
        with self._pool.connection() as connection:
            return attached_databases(connection)

    def follow_sources(self, sources: tuple[Source, ...], *, only_unfilled: bool) -> None:
        """Bring the copies of these sources to the newest snapshots of their databases.

        With `only_unfilled`, leave those alone that have been followed before: the sidecar follows them all
        the time. Raises if one of the sources cannot be followed.
        """
        relations = {source.relation for source in sources if source.kind is SourceKind.ATTACHED_TABLE}
        if not relations:
            return
        with self._pool.connection() as connection:
            aliases = aliases_of(connection, relations)
            databases = {one.alias: one for one in attached_databases(connection)}
            tables = {alias: attached_tables(connection, alias) for alias in aliases}
        for alias, declared in tables.items():
            needed = [table for table in declared if table.relation in relations]
            if not only_unfilled or not all(table.is_complete for table in needed):
                self.follow(databases[alias], is_newest=True)
        with self._pool.connection() as connection:
            for alias in aliases:
                for table in attached_tables(connection, alias):
                    if table.relation in relations and table.last_error is not None:
                        raise AttachedFailed(
                            f"{alias}.{table.schema}.{table.name} cannot be read: {table.last_error}",
                            hint="the stream table stays as it is until the table can be read again",
                        )

    def compare(self, tables: Sequence[StreamTableId]) -> None:
        """Prove that the copies which stream tables read equal the tables, in one snapshot of each."""
        with self._pool.connection() as connection:
            read = read_aliases(connection, tables)
            databases = attached_databases(connection) if read else ()
        for database in databases:
            if database.alias in read:
                self.follow(database, compares=True)

    def follow(
        self, database: AttachedDatabase, *, compares: bool = False, is_newest: bool = False
    ) -> Followed:
        """Follow one attached database; with `compares`, prove that the copies equal its tables.

        Without `is_newest`, the broker may give a snapshot that was taken up to some seconds before.
        """
        with self._places.using(database) as place:
            broker = None if is_newest else self.broker
            for attempt in range(ATTEMPTS):
                try:
                    with self._pool.connection() as local:
                        remote = self._places.connect(place, database)
                        if database.is_decoded:
                            done = self._decode(place, local, remote, database, compares, is_newest)
                        else:
                            share = partial(broker.open, place.dsn, database) if broker is not None else None
                            following = Following(
                                database,
                                local,
                                remote,
                                _label(local),
                                compares,
                                share,
                                self._released,
                                self.counters,
                            )
                            done = self._leave(following) if database.is_detached else following.follow()
                        place.followed_at = time.monotonic()
                        return done
                except Unshared:
                    # the broker is not there, or has not what we need: we read for ourselves
                    broker = None
                    place.roll_back()
                except Misfit:
                    place.roll_back()
                    if attempt + 1 == ATTEMPTS:
                        raise Busy(
                            f"tables of {database.alias} are being altered", hint="try again in a moment"
                        ) from None
                except DatabaseError as error:
                    if is_contention(error):
                        place.roll_back()
                        raise Busy(
                            f"another session follows or alters tables of {database.alias}",
                            hint="try again in a moment",
                        ) from error
                    place.close()
                    raise not_followed(
                        database, (error.diag.message_primary or str(error)).strip()
                    ) from error
                except PgTrickleError:
                    place.roll_back()
                    raise
        raise AssertionError

    def _decode(
        self,
        place: Place,
        local: Connection,
        remote: Connection,
        database: AttachedDatabase,
        compares: bool,
        is_newest: bool,
    ) -> Followed:
        """Follow a database by its log, or leave it."""
        polled = START if place.state is None else place.state.end
        may_read = compares or is_newest or time.monotonic() > place.waits_until
        following = LogFollowing(
            database, place.dsn, local, remote, compares, is_newest, may_read, self._released
        )
        if database.is_detached:
            following.leave()
            self._forget(local, database.alias)
            return Followed()
        try:
            done = following.follow()
        except AttachedFailed as error:
            raise not_followed(database, error.message, error.hint) from error
        place.looked, place.state = max(place.looked, polled), following.state or place.state
        if following.waits is not None:
            place.waits_until = time.monotonic() + WAIT_SECONDS
            if is_newest or compares:
                raise following.waits
        return done

    def adopt_origins(self) -> int:
        """Follow origins in served databases, instead of comparing foreign tables; returns of how many."""
        if not self.origins and self.broker is None:
            return 0
        with self._pool.connection() as local:
            adopted = adopt_declared_origins(local, self.origins)
            if self.broker is not None:
                adopted += adopt_foreign_origins(local, self.served(), self._left_alone())
            local.commit()
        return adopted

    def has_news(self, database: AttachedDatabase) -> bool:
        """Whether the database has changes, or we need something of it: one small query in each."""
        if self.broker is not None:
            self.broker.rest()
        with self._pool.connection() as local:
            tables = attached_tables(local, database.alias)
        if database.is_detached or any(
            (table.relation is None and table.last_error is None)
            or (table.is_read and table.last_error is None and not table.is_complete)
            or (not table.is_read and table.is_followed)
            for table in tables
        ):
            return True
        seen = {table.definition["relation"]: table for table in tables if table.is_read and table.definition}
        if not seen:
            if self.broker is not None:
                self.broker.leave(database.reader)
            return False
        place = self._places.find(database)
        if time.monotonic() - place.followed_at > HEARTBEAT_SECONDS:
            # a sign of life, for a table that nobody writes to; and for the first time
            return True
        if database.is_decoded:
            return self._log_has_news(database, tables)
        known = [table.frontier for table in seen.values() if table.frontier is not None]
        oldest = min(known, key=lambda frontier: frontier.xmin) if known else Frontier(3, 3)
        with self._places.using(database) as place:
            try:
                remote = self._places.connect(place, database)
                row = remote.execute(
                    "select pgtrickle_internal.touched_origins(%s::oid[], %s::pg_snapshot),"
                    " pgtrickle_internal.installation()",
                    (list(seen), str(oldest)),
                ).fetchone()
                is_altered = self._is_altered(place, remote, database, tables)
                remote.rollback()
            except DatabaseError as error:
                place.close()
                raise not_followed(database, (error.diag.message_primary or str(error)).strip()) from error
        is_elsewhere = row is not None and row[1].split(" ")[2] != database.place
        return is_altered or is_elsewhere or bool(row and row[0])

    def _log_has_news(self, database: AttachedDatabase, tables: Sequence[AttachedTable]) -> bool:
        """Whether the log of a database has grown, or there is something wrong with it."""
        stored = None if database.position is None else Lsn.parse(database.position)
        with self._places.using(database) as place:
            try:
                remote = self._places.connect(place, database)
                place.state = log_state(remote, database, stored)
                is_altered = self._is_altered(place, remote, database, tables)
                remote.rollback()
            except DatabaseError as error:
                place.close()
                raise not_followed(database, (error.diag.message_primary or str(error)).strip()) from error
            if not any(table.is_read and table.last_error is None for table in tables):
                return is_altered
            return is_altered or place.state.gap is not None or place.state.end > place.looked

    def slot_state(self, database: AttachedDatabase) -> SlotState | None:
        """How much log our slot in a database holds back, as of the last poll; None if there is none."""
        state = self._places.find(database).state
        if state is None or not state.has_slot or database.position is None:
            return None
        return slot_lag(state, Lsn.parse(database.position))

    def give_up_slot(self, database: AttachedDatabase) -> None:
        """Drop our slot in a database, so that it need not keep its log. Its tables are compared later."""
        with self._places.using(database) as place:
            drop_slot(self._places.connect(place, database), database)
            place.state = None

    def _is_altered(
        self,
        place: Place,
        remote: Connection,
        database: AttachedDatabase,
        tables: Sequence[AttachedTable],
    ) -> bool:
        """Whether a table has another definition than we know, or can be read again; asks now and then."""
        if time.monotonic() - place.described_at < DESCRIBE_SECONDS:
            return False
        place.described_at = time.monotonic()
        described = describe_logged(remote, tables).definitions if database.is_decoded else {}

        def describe(table: AttachedTable) -> dict[str, Any] | None:
            if database.is_decoded:
                return with_obstacle(described.get(table.id), table)
            return describe_origin(remote, table)

        for table in tables:
            found = describe(table) if table.is_read else table.definition
            is_better = table.last_error is not None and table.is_read and problem_with(found) is None
            if is_better or (table.last_error is None and found != table.definition):
                return True
        return False

    def close(self) -> None:
        """Close all connections."""
        self._places.close()

    def _left_alone(self) -> set[int]:
        """The tables that were found to differ from their origin within the last hour."""
        since = time.monotonic() - LEFT_ALONE_SECONDS
        return {relation for relation, at in list(self._released.items()) if at > since}

    def _leave(self, following: Following) -> Followed:
        """Tell a database that was detached, and forget it."""
        reader, alias = following.database.reader, following.database.alias
        following.remote.execute("select pgtrickle_internal.leave_origins(%s, '{}')", (reader,))
        following.remote.commit()
        self._forget(following.local, alias)
        if self.broker is not None:
            self.broker.leave(reader)
        return Followed()

    def _forget(self, local: Connection, alias: str) -> None:
        local.execute(
            "delete from pgtrickle.pgt_attached_databases where alias = %s and is_detached", (alias,)
        )
        local.commit()


def _label(local: Connection) -> str:
    row = local.execute("select current_database()").fetchone()
    assert row is not None
    return str(row[0])
