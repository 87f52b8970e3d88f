"""Opens the feed of a stream table for a refresh; records a reset where its rows would mislead readers."""

from __future__ import annotations

from typing import Final

from pgtrickle.apply.recording import Recording, record_reset
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.refresh.session import Session

UNFIT: Final = "the columns of the stream table, or the table itself, were replaced"


def open_recording(session: Session, table: StreamTable) -> Recording | None:
    """Where to record the changes of this refresh; None if they are not kept, or a reset stands for them.

    The difference that a repair writes is not a change of the content that readers know: somebody else may
    have changed the table. The same is true if the columns were replaced.
    """
    feed = table.feed
    if feed is None:
        return None
    if not feed.fits or feed.reset_reason is not None:
        record_reset(session.write, table.id, session.taken_at, feed.reset_reason or UNFIT)
        return None
    return Recording(feed.table, feed.columns, feed.most_rows, table.id, session.taken_at)
