"""Follows tables of other databases: brings our copies from one of their snapshots to a later one.

All tables of an attached database are followed together, in one snapshot of it, so that stream tables never
mix two states of it. The copies, their change buffers and the snapshot commit in one transaction here; only
then does the other database learn that it no longer has to keep these changes. A crash in between makes it
keep them for longer, and nothing is applied twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pgtrickle.capture.attached.receiving import Followed, Receiving, Share
from pgtrickle.capture.attached.registration import Registration
from pgtrickle.capture.attached.stand_ins import StandIns
from pgtrickle.capture.attached.ticks import Counters
from pgtrickle.model.attached import AttachedDatabase
from pgtrickle.postgres.connection import Connection


@dataclass(slots=True)
class Following:
    """One attached database, seen from one that reads it.

    `local` and `remote` are connections outside of a transaction. The other fields are those of
    `StandIns`, `Registration` and `Receiving`.
    """

    database: AttachedDatabase
    local: Connection
    remote: Connection
    label: str
    compares: bool = False
    share: Share | None = None
    released: dict[int, float] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)

    def follow(self) -> Followed:
        """Bring the copies to the newest snapshot of the other database.

        A table that is too busy to get triggers does not hold up the others; it is told at the end.
        """
        StandIns(self.database, self.local, self.remote, self.released).fit_all()
        busy = Registration(self.database, self.local, self.remote, self.label).register()
        done = Receiving(
            self.database, self.local, self.remote, self.compares, self.share, self.counters
        ).receive(leaves=busy.keys())
        for reason in busy.values():
            raise reason
        return done
