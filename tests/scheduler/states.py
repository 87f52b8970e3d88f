"""What a sidecar that starts now would know."""

from __future__ import annotations

import psycopg

from pgtrickle.scheduler.policy.definitions import Definitions
from pgtrickle.scheduler.policy.state import SchedulerState
from pgtrickle.scheduler.service.load_definitions import load_definitions
from pgtrickle.scheduler.service.pending_changes import pending_tables
from pgtrickle.scheduler.service.poll import poll


def board(connection: psycopg.Connection) -> SchedulerState:
    """The board at its start, with what one look saw."""
    definitions, states = load_definitions(connection)
    board = SchedulerState(Definitions.of(definitions.values()), states)
    board.mark_behind(*pending_tables(connection, board.definitions))
    board.apply_tick(poll(connection, None, has_views=board.definitions.has_views))
    connection.rollback()
    return board
