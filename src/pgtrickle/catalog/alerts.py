"""Alerts: what happened to a stream table, told to whoever listens."""

from __future__ import annotations

import json
from typing import Final

from pgtrickle.postgres.connection import Connection

CHANNELS: Final = ("pg_trickle_alert", "pgtrickle_alert")
"""The original's users listen on either."""


def alert(connection: Connection, event: str, **facts: object) -> None:
    """Tell an event, with its facts as JSON, when the transaction commits.

    With `pgt_id` it is about that stream table: its name is added, and nothing is told of a table in
    pooler compatibility mode. Anybody may listen, so facts never quote data.
    """
    connection.execute(
        "select pgtrickle_internal.emit_alert(%s, %s::jsonb)", (event, json.dumps(facts, default=str))
    )
