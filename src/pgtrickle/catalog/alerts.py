"""Alerts: notifications about what happened to a stream table."""

from __future__ import annotations

import json
from typing import Final

from pgtrickle.postgres.connection import Connection

CHANNELS: Final = ("pg_trickle_alert", "pgtrickle_alert")
"""Users of the original pg_trickle listen on either."""


def alert(connection: Connection, event: str, **facts: object) -> None:
    """Send an event, with its facts as JSON, when the transaction commits.

    With `pgt_id` the event is about that stream table: its name is added, and a table in pooler compatibility
    mode sends nothing. Every role can listen, so facts never quote data.
    """
    connection.execute(
        "select pgtrickle_internal.emit_alert(%s, %s::jsonb)", (event, json.dumps(facts, default=str))
    )
