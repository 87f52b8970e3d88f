"""The methods of `Trickle` for a whole installation: install, grants, gates, drain, repair, uninstall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgtrickle.commands import drain, gate
from pgtrickle.commands.caches import clear_caches
from pgtrickle.commands.grants import grants
from pgtrickle.commands.install import install, uninstall
from pgtrickle.commands.repair import repair

if TYPE_CHECKING:
    from pgtrickle.commands.advise import Advice
    from pgtrickle.commands.validate import Validation


class Administration:
    """Everything about the database as a whole, and advice before anything is created."""

    _dsn: str

    def install(self) -> list[str]:
        """Install or upgrade pgtrickle in the database; return what was done. Safe to call again."""
        return install(self._dsn)

    def grants(
        self, role: str, *, owners: Sequence[str] = (), sources: Sequence[str] = (), schema: str = "public"
    ) -> list[str]:
        """The SQL statements that give roles what they lack. Nothing is changed.

        `role` installs pgtrickle and runs the sidecar. `owners` create stream tables in `schema`; without
        them, `role` does that too. `sources` are the tables that they read; without them, every table.
        """
        return grants(self._dsn, role, owners=owners, sources=sources, schema=schema)

    def validate(self, query: str, refresh_mode: str = "AUTO", *, name: str | None = None) -> Validation:
        """Check a query without creating anything: how it would be refreshed and why, and what it lacks.

        Raises if the query cannot be a stream table in this mode. Needs no Spark.

        >>> trickle.validate("select region, count(*) as orders from orders group by region").missing_grants
        ()
        """
        from pgtrickle.commands.validate import validate

        return validate(self._dsn, query, refresh_mode, name)

    def advise(self, limit: int = 10) -> Advice:
        """Rank what would gain most as a stream table: your materialized views and `limit` slow statements.

        Statements are those that pg_stat_statements has counted; without it, `notes` says so. Nothing is
        created or executed. Needs no Spark.

        >>> [(one.name, one.effective_mode.value) for one in trickle.advise().candidates]
        [('public.by_region', 'DIFFERENTIAL')]
        """
        from pgtrickle.commands.advise import advise

        return advise(self._dsn, limit)

    def repair(self, name: str | None = None) -> list[str]:
        """Repair one stream table, or everything in the database; return what was done.

        After a restore, a clone or an upgrade of the server, no refresh runs until you call this.

        >>> for sentence in trickle.repair("sales"):
        ...     print(sentence)
        public.sales ...
        """
        return repair(self._dsn, name)

    def gate(self, source: str) -> list[str]:
        """Pause every stream table that depends on a source, for example during a bulk load.

        Return their names.

        >>> trickle.gate("orders")
        ['public.sales']
        """
        return gate.gate(self._dsn, source)

    def ungate(self, source: str) -> None:
        """Let the stream tables that depend on a source be refreshed again.

        >>> trickle.ungate("orders")
        """
        gate.ungate(self._dsn, source)

    def drain(self, timeout: int = 60) -> None:
        """Let no refresh start in any sidecar and wait for the running ones, for example before a shutdown.

        Raise `Busy` if one still runs after `timeout` seconds.

        >>> trickle.drain(timeout=10)
        """
        drain.drain(self._dsn, timeout)

    def undrain(self) -> None:
        """Let refreshes start again.

        >>> trickle.undrain()
        """
        drain.undrain(self._dsn)

    def clear_caches(self) -> int:
        """Make every sidecar recompile all queries; return how many compiled queries the catalog had."""
        return clear_caches(self._dsn)

    def uninstall(
        self, *, drop_tables: bool = False, export: str | None = None, force: bool = False
    ) -> list[str]:
        """Remove pgtrickle from the database. Stream tables become ordinary tables unless dropped as well.

        `export` names a new file that gets the definitions first, as SQL. While a sidecar serves the
        database, only `force` removes it.
        """
        return uninstall(self._dsn, drop_tables=drop_tables, export=export, force=force)

    # the names of the SQL functions
    gate_source = gate
    ungate_source = ungate
