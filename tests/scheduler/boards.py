"""What a sidecar that starts now would know."""

from __future__ import annotations

import psycopg

from pgtrickle.scheduler.board import Board
from pgtrickle.scheduler.definitions import Definitions, loaded
from pgtrickle.scheduler.pending import pending
from pgtrickle.scheduler.tick import look


def board(connection: psycopg.Connection) -> Board:
    """The board at its start, with what one look saw."""
    definitions, standings = loaded(connection)
    board = Board(Definitions.of(definitions.values()), standings)
    board.mark_behind(*pending(connection, board.definitions))
    board.notice(look(connection, None, has_views=board.definitions.has_views))
    connection.rollback()
    return board
