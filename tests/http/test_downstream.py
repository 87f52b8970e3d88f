"""Publications, subscribers and channels over HTTP."""

from __future__ import annotations

import pytest

from pgtrickle.interfaces.http import models
from tests.fixtures.databases import APP


@pytest.fixture
def api(serve, database, admin):
    """Commands run as the application, which owns the stream tables."""
    admin.execute(f"grant create on database {database.name} to {APP}")
    return serve(http_dsn=database.dsn(APP))


def test_a_stream_table_is_published_and_unpublished(api, shop):
    made = api.post("/tables/sales/publish", {"publication": "news"})
    assert made.status_code == 200, made.text
    found = models.Publication.model_validate(made.json())
    assert found.publication == "news"
    assert "wal_level" in found.notices[0]
    (row,) = api.get("/publications").json()
    assert models.PublicationStatus.model_validate(row).stream_table == "public.sales"
    assert api.post("/tables/sales/unpublish").json() == {"notices": []}
    assert api.get("/publications").json() == []
    assert api.post("/tables/sales/unpublish").status_code in (404, 409, 422)


def test_slots_and_channels_are_checked(api, shop):
    unknown = api.post("/tables/sales/track", {"slot": "nope"})
    assert "no logical replication slot" in unknown.text
    assert 400 <= unknown.status_code < 500
    assert api.post("/tables/sales/untrack", {"slot": "nope"}).json() == {"ok": True}
    assert api.post("/tables/sales/subscribe", {"channel": "news"}).json() == {"ok": True}
    (row,) = api.send("GET", "/subscriptions").json()
    assert models.Subscription.model_validate(row).channel == "news"
    assert api.post("/tables/sales/unsubscribe", {"channel": "news"}).json() == {"ok": True}
    assert api.post("/tables/sales/subscribe", {"channel": "pgtrickle_alert"}).status_code == 422
    assert api.post("/tables/sales/subscribe", {"channel": ""}).status_code == 422
