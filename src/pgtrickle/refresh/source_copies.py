"""Sources that cannot have triggers: each is compared with our copy of it before a refresh begins."""

from __future__ import annotations

from collections.abc import Collection

from pgtrickle.model.errors import Busy, PgTrickleError, RefreshFailed
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.locking import is_contention
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import LOCK_TIMEOUT

_HINTS = {
    "55000": "refresh materialized view {name}",
    "42501": "grant select on {name} to the role of the sidecar",
}
_FOREIGN_HINT = "check the foreign server and the user mapping; the next refresh compares again"


def compare_sources(
    engine: Engine, compilation: Compilation, done: set[Source], *, is_scheduled: bool = False
) -> None:
    """Bring the copies of a query's sources up to date, except those in `done`.

    A scheduled refresh reads attached tables as the sidecar has followed them so far.

    The difference is committed to the copy and its change buffer before the snapshot of the refresh is
    taken. From then on it is a change like any other, which each reader of the source sees exactly once.
    """
    copied = [source for source in compilation.copied_sources if source not in done]
    engine.attached.follow_sources(tuple(copied), only_unfilled=is_scheduled)
    done.update(source for source in copied if source.kind is SourceKind.ATTACHED_TABLE)
    for source in copied:
        if source not in done:
            with engine.connection() as connection:
                _compare(connection, source)
            done.add(source)


def is_behind(connection: Connection, copied: Collection[Source]) -> bool:
    """Whether a materialized view was refreshed after it was compared, as of the connection's snapshot."""
    views = [s.relation for s in copied if s.kind is SourceKind.MATERIALIZED_VIEW]
    if not views:
        return False
    row = connection.execute(
        "select exists (select from pgtrickle.pgt_sources s where s.source_relid = any (%s::oid[])"
        " and s.version is distinct from pgtrickle_internal.source_version(s.source_relid))",
        (views,),
    ).fetchone()
    return bool(row and row[0])


def _compare(connection: Connection, source: Source) -> None:
    # each statement has its own snapshot, so the rows are read after their version
    connection.execute("set transaction isolation level read committed")
    connection.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
    try:
        connection.execute("select pgtrickle_internal.compare_source(%s)", (source.relation,))
        connection.commit()
    except DatabaseError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: DatabaseError) -> PgTrickleError:
    if is_contention(error):
        return Busy(f"{source.name} is locked by another session", hint="try again in a moment")
    message = (error.diag.message_primary or str(error)).strip()
    hint = _HINTS.get(error.sqlstate or "", "").format(name=source.name) or error.diag.message_hint
    if not hint and source.kind is SourceKind.FOREIGN_TABLE:
        hint = _FOREIGN_HINT
    noun = source.kind.value.replace("_", " ")
    return RefreshFailed(f"{noun} {source.name} cannot be compared: {message}", hint=hint)
