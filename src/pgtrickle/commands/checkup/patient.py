"""What the checks of one database are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pgtrickle.commands.status import Sidecar
from pgtrickle.model.finding import Finding
from pgtrickle.model.settings import Settings
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.pinned import PinnedConnection
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Patient:
    """A database in which pgtrickle is installed, on one connection."""

    connection: PinnedConnection
    settings: Settings
    role: str
    """The role of the sidecar, quoted."""
    is_sidecar_role: bool
    """Whether the connection has the rights of that role. Some checks need them."""
    sidecars: tuple[Sidecar, ...]
    """Those that have reported lately."""

    def rows(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of one of our statements."""
        return read(self.connection, name, parameters)

    def row(self, query: str) -> tuple[Any, ...]:
        """The only row of a query."""
        found = self.connection.execute(query).fetchone()
        assert found is not None
        return found


Check: TypeAlias = Callable[[Patient], Iterable[Finding]]


def read(
    connection: Connection, name: str, parameters: Mapping[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a statement in `sql/checkup`."""
    return connection.execute(load("pgtrickle.commands", f"sql/checkup/{name}.sql"), parameters).fetchall()


def listed(names: Iterable[str], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    found = list(names)
    more = len(found) - most
    return ", ".join(found[:most]) + (f" and {more:,} more" if more > 0 else "")


def call(function: str, name: str) -> str:
    """The statement that calls one of our functions with the name of a stream table."""
    escaped = name.replace("'", "''")
    return f"select pgtrickle.{function}('{escaped}')"
