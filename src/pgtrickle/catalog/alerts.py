"""Alerts: notifications about what happened to a stream table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

CHANNELS: Final = ("pg_trickle_alert", "pgtrickle_alert")
"""Users of the original pg_trickle listen on either."""
KEPT: Final = 10_000
KEPT_FOR: Final = timedelta(days=7)
"""How many alerts are kept for those who poll, and for how long."""


def alert(connection: Connection, event: str, **facts: object) -> None:
    """Keep an event with its facts, and send it as JSON when the transaction commits.

    With `pgt_id` the event is about that stream table: its name is added, and a table in pooler compatibility
    mode sends nothing. Every role can listen and poll, so facts never quote data.
    """
    alert_each(connection, event, [facts])


def alert_each(connection: Connection, event: str, all_facts: Sequence[Mapping[str, object]]) -> None:
    """Send several alerts of one event, in one statement."""
    connection.execute(
        "select pgtrickle_internal.emit_alert(%s, f.facts::jsonb)"
        " from unnest(%s::text[]) with ordinality as f(facts, position) order by f.position",
        (event, [json.dumps(facts, default=str) for facts in all_facts]),
    )


def prune_alerts(connection: Connection) -> None:
    """Remove alerts that are too old or too many."""
    connection.execute(
        load("pgtrickle.catalog", "sql/queries/prune_alerts.sql"), {"kept": KEPT, "kept_for": KEPT_FOR}
    )
