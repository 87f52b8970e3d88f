"""Previews and changes of rows by HTTP, once and as a stream."""

from __future__ import annotations

import pytest

from pgtrickle.interfaces.http import models
from tests.fixtures.databases import APP
from tests.fixtures.waiting import eventually
from tests.http.conftest import plain_client, sidecar_of
from tests.http.test_events import told


@pytest.fixture
def api(serve, database):
    return serve(http_dsn=database.dsn(APP))


@pytest.fixture
def followed(api, orders, app):
    """A stream table that keeps its changes, loaded and followed."""
    with app.transaction():
        app.execute(
            "select pgtrickle.create_stream_table('copy', 'select id, region from orders', '1s', 'FULL',"
            " keep_changes => '1h')"
        )
    with sidecar_of(api):
        eventually(lambda: api.row("public.copy")["state"] == "fresh")
        yield orders


def changes(api, since: object) -> models.Changes:
    answer = api.get(f"/tables/copy/changes?since={since}", token=True)
    assert answer.status_code == 200, answer.text
    return models.Changes.model_validate(answer.json())


def test_changes_continue_from_a_point(api, followed):
    start = changes(api, "now")
    assert (start.changes, [column.name for column in start.columns]) == ([], ["id", "region"])
    followed.change("delete from orders where id = 1", "insert into orders values (3, null, 7)")
    eventually(lambda: len(changes(api, start.next).changes) > 0)
    found = changes(api, start.next)
    (batch,) = found.changes
    assert (batch.inserted, batch.deleted) == ([["3", None]], [["1", "north"]])
    assert (batch.is_complete, batch.reset, found.next) == (True, None, batch.sequence)
    assert changes(api, found.next).changes == []


def test_changes_are_streamed_as_refreshes_commit_and_continue_after_a_lost_connection(api, followed):
    url = f"{api.server.url}api/v1/tables/copy/changes/stream"
    with plain_client() as client:
        with client.stream("GET", url, headers=api.bearer) as stream:
            events = told(stream.iter_lines())
            eventually(lambda: api.server.context.hub.has_listeners)
            followed.change("insert into orders values (3, 'west', 7)")
            first = next(events)
            assert models.Batch.model_validate(first.data).inserted == [["3", "west"]]
        followed.change("insert into orders values (4, 'east', 7)")
        again = {**api.bearer, "Last-Event-ID": first.id}
        with client.stream("GET", url, headers=again) as stream:
            second = next(told(stream.iter_lines()))
            assert models.Batch.model_validate(second.data).inserted == [["4", "east"]]


@pytest.mark.parametrize("path", ["/tables/copy/changes", "/tables/copy/changes/stream"])
def test_a_stream_table_that_keeps_no_changes_says_so(api, shop, path):
    answer = api.get(path.replace("copy", "sales"), token=True)
    assert (answer.status_code, answer.json()["code"]) == (409, "PGT-S023"), answer.text


def test_a_point_is_a_number(api, followed):
    assert api.get("/tables/copy/changes?since=soon", token=True).status_code == 422
    stream = "/tables/copy/changes/stream"
    assert api.get(stream, token=True, headers={"Last-Event-ID": "x"}).status_code == 422


def test_a_preview_shows_what_the_next_refresh_would_change(api, followed):
    api.send("PATCH", "/tables/copy", json={"schedule": "manual"})
    followed.change("update orders set region = 'west' where id = 1")
    answer = api.get("/tables/copy/preview", token=True)
    assert answer.status_code == 200, answer.text
    found = models.Preview.model_validate(answer.json())
    assert (found.inserted, found.deleted, found.strategy) == ([["1", "west"]], [["1", "north"]], "FULL")
    assert (found.rows_inserted, found.rows_deleted, found.is_truncated) == (1, 1, False)
    assert [column.type for column in found.columns] == ["integer", "text"]
    assert api.get("/tables/copy/rows", token=True).json()["rows"][0] == ["1", "north"]


def test_without_a_sidecar_there_is_no_preview(api, shop):
    answer = api.get("/tables/sales/preview", token=True)
    assert (answer.status_code, answer.json()["code"]) == (503, "PGT-C009")
