"""The installation behind a connection: its version, whether it is a copy, and its server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from pgtrickle.model.errors import CopiedDatabase, VersionMismatch
from pgtrickle.postgres.connection import Connection

MIGRATIONS: Final = (
    "0001_catalog.sql",
    "0002_copies.sql",
    "0003_ticks.sql",
    "0004_control.sql",
    "0005_compiled.sql",
    "0006_costs.sql",
    "0007_ground.sql",
    "0008_capture.sql",
    "0010_identity.sql",
    "0011_rights.sql",
    "0012_limits.sql",
    "0013_helpers.sql",
    "0014_author_path.sql",
    "0015_counters.sql",
    "0016_more_ground.sql",
    "0017_public_functions.sql",
    "0018_requests.sql",
    "0019_freshness.sql",
    "0020_collations.sql",
    "0021_alerts.sql",
    "0023_feeds.sql",
    "0024_phases.sql",
    "0025_databases.sql",
    "0026_publications.sql",
    "0027_attached.sql",
    "0028_wal.sql",
    "0029_wal_reader.sql",
    "0030_attached_wal.sql",
    "0031_auxiliaries.sql",
    "0032_state_behind.sql",
)
"""In order; a database stores how many it has. Never edit a migration that was released."""

VERSION: Final = len(MIGRATIONS)

COPIED: Final = "this database is a copy, and pgtrickle does nothing in it until it is repaired"
REPAIR: Final = "run select * from pgtrickle.repair()"


@dataclass(frozen=True, slots=True)
class Installation:
    """The result of `pgtrickle_internal.installation()`.

    `place` identifies the server, so it changes with a failover.
    """

    version: int
    is_copy: bool
    place: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of the SQL function."""
        version, state, place = text.split(" ")
        return cls(int(version), state == "copy", place)

    def check(self) -> None:
        """Raise unless this code matches the catalog, and the catalog belongs to this database."""
        if self.version != VERSION:
            raise other_version(self.version)
        if self.is_copy:
            raise CopiedDatabase(COPIED, hint=REPAIR)


def installation(connection: Connection) -> Installation:
    """The installation that this connection leads to."""
    row = connection.execute("select pgtrickle_internal.installation()").fetchone()
    assert row is not None
    return Installation.parse(row[0])


def other_version(found: int) -> VersionMismatch:
    """The error for a catalog of another version than this code."""
    if found < VERSION:
        return VersionMismatch(
            f"the catalog in this database has version {found}, and this pgtrickle needs version {VERSION}",
            hint="run `pgtrickle install`",
        )
    return VersionMismatch(
        f"the catalog in this database has version {found}, newer than version {VERSION} of this pgtrickle",
        hint="upgrade pgtrickle to the version that installed the catalog",
    )
