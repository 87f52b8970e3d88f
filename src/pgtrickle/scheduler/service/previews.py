"""Answers requests for previews, in threads beside the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pgtrickle.catalog.claims import check_not_suspended, check_startable
from pgtrickle.catalog.requests import UserRequest, note_waiting_previews
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.changes import Preview, preview_to_json
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.preview import preview
from pgtrickle.scheduler.policy.units import groups
from pgtrickle.scheduler.service.comparisons import RequestThreads
from pgtrickle.scheduler.service.load_definitions import load_graph

SECONDS: Final = 30.0
"""The time limit of a preview for which its request sets none."""


@dataclass(slots=True)
class Previews(RequestThreads):
    """Answers requests for previews."""

    kind: ClassVar[str] = "preview"

    def take(self) -> UserRequest | None:
        """The next request; what sessions ask for inside their transactions becomes a request first."""
        with self.engine.connection() as connection:
            note_waiting_previews(connection)
            connection.commit()
        return super(Previews, self).take()

    def carry_out(self, request: UserRequest) -> Mapping[str, Any]:
        """Preview the next refresh."""
        return preview_to_json(preview_table(self.engine, request.table, request.seconds or SECONDS))


def preview_table(engine: Engine, table_id: StreamTableId, seconds: float) -> Preview:
    """Preview the next refresh of a stream table, with those that would be refreshed together with it."""
    with engine.connection() as connection:
        table = stream_table(connection, table_id)
        check_not_suspended(table)
        check_startable(connection, table)
        graph = load_graph(connection)
    (group,) = groups((table.id,), graph)
    return preview(engine, group, table, seconds)
