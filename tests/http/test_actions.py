"""What changes something: every action of the API, and what it answers."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from pgtrickle.interfaces.http import models, requests
from pgtrickle.model.options import ON_ALTER, ON_CREATE
from tests.fixtures.databases import APP
from tests.fixtures.waiting import eventually

QUERY = "select region, count(*) as orders from orders group by region"


@pytest.fixture
def api(serve, database):
    """Commands run as the application, which owns the sources; the sidecar keeps its own role."""
    return serve(http_dsn=database.dsn(APP))


def test_a_stream_table_is_created_altered_and_dropped(api, orders):
    made = api.post("/tables", {"name": "counts", "query": QUERY, "schedule": "5s", "tier": "cold"})
    assert made.status_code == 201, made.text
    row = models.TableRow.model_validate(made.json())
    assert (row.name, row.owner, row.schedule, row.tier) == ("public.counts", "app", "5s", "cold")
    changed = api.send("PATCH", "/tables/counts", json={"schedule": "manual", "tier": "hot"})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["schedule"], changed.json()["tier"]) == ("manual", "hot")
    gone = api.send("DELETE", "/tables/counts")
    assert (gone.status_code, gone.content) == (204, b"")
    assert api.get("/tables/counts").status_code == 404


def test_an_existing_stream_table_is_kept_or_replaced_as_asked(api, orders):
    assert api.post("/tables", {"name": "counts", "query": QUERY}).status_code == 201
    taken = api.post("/tables", {"name": "counts", "query": QUERY})
    assert (taken.status_code, taken.json()["code"]) == (409, "PGT-S014")
    kept = api.post("/tables", {"name": "counts", "query": QUERY, "schedule": "9s", "if_not_exists": True})
    assert (kept.status_code, kept.json()["schedule"]) == (201, "calculated")
    new = api.post("/tables", {"name": "counts", "query": QUERY, "schedule": "9s", "or_replace": True})
    assert (new.status_code, new.json()["schedule"]) == (201, "9s")
    both = {"name": "counts", "query": QUERY, "or_replace": True, "if_not_exists": True}
    assert api.post("/tables", both).status_code == 422


def test_dropping_what_others_read_names_them(api, shop):
    refused = api.send("DELETE", "/tables/sales")
    assert (refused.status_code, refused.json()["code"]) == (409, "PGT-S016")
    assert "big" in refused.text
    assert api.send("DELETE", "/tables/sales?cascade=true").status_code == 204
    assert api.get("/overview").json()["tables"] == []


def test_a_refresh_tells_what_it_did(api, served):
    served.change("insert into orders values (3, 'west', 1)")
    done = api.post("/tables/sales/refresh")
    assert done.status_code == 200, done.text
    outcome = models.Outcome.model_validate(done.json())
    assert outcome.action in ("FULL", "NO_DATA")
    assert {row[0] for row in api.get("/tables/sales/rows", token=True).json()["rows"]} == {
        "north",
        "south",
        "west",
    }


def test_without_a_sidecar_nothing_is_refreshed(api, shop):
    for path in ("/tables/sales/refresh", "/tables/sales/verify"):
        refused = api.post(path)
        assert (refused.status_code, refused.json()["code"]) == (503, "PGT-C009"), refused.text


def test_a_stream_table_is_paused_and_resumed(api, served):
    assert api.post("/tables/sales/pause").json()["state"] == "suspended"
    assert api.row("public.sales")["state"] == "suspended"
    refused = api.post("/tables/sales/refresh")
    assert (refused.status_code, refused.json()["code"]) == (409, "PGT-S010")
    assert api.post("/tables/sales/resume").status_code == 200
    eventually(lambda: api.row("public.sales")["state"] == "fresh")


def test_a_stream_table_is_verified_and_repaired(api, served):
    found = api.post("/tables/sales/verify", {"timeout": 60})
    assert found.status_code == 200, found.text
    assert (found.json()["name"], found.json()["rows"]) == ("public.sales", 2)
    everything = api.post("/verify")
    assert sorted(one["name"] for one in everything.json()) == ["public.big", "public.sales"]
    repaired = models.Sentences.model_validate(api.post("/tables/sales/repair").json())
    assert "public.sales" in repaired.done[0]


def test_a_source_is_gated_and_ungated(api, shop):
    source = quote("public.orders")
    assert api.post(f"/sources/{source}/gate").json() == {"tables": ["public.big", "public.sales"]}
    eventually(lambda: api.row("public.sales")["waits"] is not None)
    assert api.post(f"/sources/{source}/ungate").json() == {"changed": True}
    assert api.post(f"/sources/{source}/ungate").json() == {"changed": False}
    assert api.post("/sources/nope/gate").status_code == 404


def test_a_database_is_drained_and_undrained(serve, shop):
    api = serve()
    assert api.post("/drain", {"timeout": 5}).json() == {"ok": True}
    eventually(lambda: api.get("/overview").json()["enabled"] is False)
    assert api.post("/undrain").json() == {"changed": True}


def test_the_whole_database_is_repaired(serve, shop):
    assert serve().post("/repair").status_code == 200


def test_caches_are_cleared(serve, shop):
    assert serve().post("/clear-caches").json() == {"entries": 0}


def test_several_stream_tables_are_created_together_or_not_at_all(api, orders):
    good = [
        {"name": "top", "query": "select * from counts where orders > 1", "schedule": "3s"},
        {"name": "counts", "query": QUERY},
    ]
    bad = api.post("/bulk-create", {"definitions": [*good, {"name": "odd", "query": "select nope"}]})
    assert bad.status_code == 422
    assert api.get("/overview").json()["tables"] == []
    made = api.post("/bulk-create", {"definitions": good})
    assert made.status_code == 201, made.text
    found = [models.CreatedTable.model_validate(one).name for one in made.json()]
    assert sorted(found) == ["public.counts", "public.top"]
    assert api.post("/bulk-create", {"definitions": []}).status_code == 422


def test_a_role_that_may_not_act_is_refused(api, shop):
    refused = api.post("/drain")
    assert (refused.status_code, refused.json()["code"]) == (403, "PGT-A002")


def test_the_api_takes_exactly_the_options_of_stream_tables():
    own = {"name", "query", "owner", "if_not_exists", "or_replace"}
    assert set(requests.CreateTable.model_fields) - own == {option.name for option in ON_CREATE}
    assert set(requests.AlterTable.model_fields) - {"query"} == {option.name for option in ON_ALTER}
