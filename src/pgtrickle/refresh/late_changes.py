"""Sources that are captured from the log: everything that the snapshot of a refresh sees is decoded first.

The snapshot is taken first. Then capture catches up with the position that the log has now, so that every
transaction which the snapshot sees has been decoded. The snapshot sees rows that were stored before it was
taken; all others are copied to where it sees them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.capture.wal.late_rows import lease_window
from pgtrickle.capture.wal.slot import SlotLost
from pgtrickle.changes.source_window import DecodedRows, Start, buffers
from pgtrickle.model.errors import Busy
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
from pgtrickle.refresh.claim import Overtaken
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.decide.windows import starts_of
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.faults import Altered
from pgtrickle.refresh.session import Session


def provide_decoded(engine: Engine, session: Session, members: Sequence[CompiledTable]) -> None:
    """Decode what the snapshot sees of the sources that have windows, and tell the session where it is.

    Raises Altered if changes are missing in the log, and Overtaken if it cannot be read now: the refresh
    starts over.
    """
    if not session.from_wal:
        return
    starts: dict[RelationId, list[Start]] = {}
    for start in dict.fromkeys(start for member in members for start in starts_of(member)):
        if start[0] in session.from_wal:
            starts.setdefault(start[0], []).append(start)
    if not starts:
        return
    try:
        engine.wal.catch_up()
        # after decoding: what was not published before is missing now
        engine.wal.check_published(starts)
        late = engine.wal.late(starts, session.frontier)
        session.decoded = {
            source: DecodedRows(
                (_window(engine, session, found),) if source in late else buffers(source), session.frontier
            )
            for source, found in starts.items()
        }
    except SlotLost as lost:
        raise Altered from lost
    except Busy as busy:
        # no stream table is at fault
        raise Overtaken from busy


def _window(engine: Engine, session: Session, starts: Sequence[Start]) -> RelationName:
    number = lease_window(session.write, starts[0][0])
    if number is None:
        raise Busy("too many refreshes read the same source", hint="try again in a moment")
    return engine.wal.window(starts, session.frontier, number)
