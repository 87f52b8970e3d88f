"""Alerts: what happened to a stream table, told to whoever listens.

They are part of the transaction that they belong to: a listener hears of what is committed, and only of
that. Every role of the database may listen, so an alert never holds a value from a row.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from pgtrickle.postgres.connection import Connection

CHANNELS: Final = ("pg_trickle_alert", "pgtrickle_alert")
MOST_BYTES: Final = 7999
"""What PostgreSQL takes for one notification."""
_ELLIPSIS: Final = "…"


def alert(connection: Connection, event: str, **facts: object) -> None:
    """Tell an event, with its facts as JSON, when the transaction commits."""
    told = {"event": event, **facts, "at": facts.get("at") or datetime.now(UTC)}
    connection.execute(
        "select pg_notify(c.channel, %s) from unnest(%s::text[]) as c(channel)",
        (payload(told), list(CHANNELS)),
    )


def payload(facts: dict[str, object]) -> str:
    """The facts as JSON that PostgreSQL takes; the longest text is cut until it does."""
    told = json.loads(json.dumps(facts, default=_plain))
    while len(text := json.dumps(told, ensure_ascii=False).encode()) > MOST_BYTES:
        longest = max(told, key=lambda name: len(str(told[name])))
        kept = str(told[longest])
        # at most four bytes are a character, and an escape six
        cut = max(1, (len(text) - MOST_BYTES) // 6)
        told[longest] = kept[: max(0, len(kept) - cut - len(_ELLIPSIS))] + _ELLIPSIS
    return text.decode()


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
