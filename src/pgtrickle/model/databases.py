"""The databases that a process serves, and how each of them is served."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgtrickle.model.settings import Pooling

QUOTA = 1
"""The workers that a database always has, unless the configuration says otherwise."""


@dataclass(frozen=True, slots=True)
class DeclaredOrigin:
    """A table of a served database whose rows are those of a table in another one, its origin."""

    schema: str
    name: str
    reference: str
    origin_schema: str
    origin_name: str


@dataclass(frozen=True, slots=True)
class ServedDatabase:
    """One database. What is None comes from the settings of the process.

    `name` is what the log, the page and the metrics call it; it is unique in the process. `quota` is the
    number of workers that it always has.
    """

    name: str
    dsn: str = field(repr=False)
    quota: int = QUOTA
    listen_dsn: str | None = field(default=None, repr=False)
    pooler: Pooling | None = None
    max_connections: int | None = None
    origins: tuple[DeclaredOrigin, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveredServer:
    """A server on which every database with pgtrickle is served, except those that are excluded.

    `dsn` is the address of one of its databases; the other databases are reached with the same credentials.
    """

    dsn: str = field(repr=False)
    exclude: frozenset[str] = frozenset()
    quota: int = QUOTA
    pooler: Pooling | None = None
    max_connections: int | None = None


@dataclass(frozen=True, slots=True)
class Databases:
    """Everything that a process serves. `unserved` databases can only be attached to others."""

    databases: tuple[ServedDatabase, ...] = ()
    servers: tuple[DiscoveredServer, ...] = ()
    unserved: tuple[ServedDatabase, ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether this is one database, and stays one."""
        return len(self.databases) == 1 and not self.servers
