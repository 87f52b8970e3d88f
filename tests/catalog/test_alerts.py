"""Alerts reach whoever listens on either channel, with the transaction they belong to."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pgtrickle.catalog.alerts import CHANNELS, MOST_BYTES, alert, payload
from pgtrickle.model.names import RelationName
from tests.fixtures.databases import APP


def test_an_alert_is_heard_on_both_channels_once_it_is_committed(connection, database):
    with database.connect(APP, autocommit=True) as listener:
        for channel in CHANNELS:
            listener.execute(f"listen {channel}")
        alert(connection, "resumed", stream_table=RelationName("shop", "sales"), rows=3)
        connection.commit()
        heard = list(listener.notifies(timeout=10, stop_after=2))
    assert sorted(one.channel for one in heard) == sorted(CHANNELS)
    (told,) = {one.payload for one in heard}
    facts = json.loads(told)
    assert datetime.fromisoformat(facts.pop("at")) <= datetime.now(UTC)
    assert facts == {"event": "resumed", "stream_table": "shop.sales", "rows": 3}


def test_an_alert_that_is_rolled_back_is_not_heard(connection, database):
    with database.connect(APP, autocommit=True) as listener:
        listener.execute(f"listen {CHANNELS[0]}")
        alert(connection, "resumed", stream_table="a")
        connection.rollback()
        alert(connection, "resumed", stream_table="b")
        connection.commit()
        (heard,) = listener.notifies(timeout=10, stop_after=1)
    assert json.loads(heard.payload)["stream_table"] == "b"


def test_a_long_text_is_cut_to_what_postgresql_takes(connection):
    for text in ("long " * 4_000, "ä" * 9_000, '"' * 9_000, "𝄞" * 9_000):
        told = payload({"event": "refresh_failed", "reason": text, "rows": 1})
        assert len(told.encode()) <= MOST_BYTES
        facts = json.loads(told)
        assert (facts["event"], facts["rows"]) == ("refresh_failed", 1)
        assert facts["reason"].endswith("…")
        assert text.startswith(facts["reason"].removesuffix("…"))
        connection.execute("select pg_notify('pgtrickle_alert', %s)", (told,))
    connection.commit()
