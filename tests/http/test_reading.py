"""What the API tells about stream tables, without a token on the loopback interface."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from pgtrickle.commands.engine import build_engine
from pgtrickle.interfaces.http import models
from tests.fixtures.waiting import eventually
from tests.http.conftest import no_spark, sidecar_of


def test_the_overview_has_every_stream_table(api, shop):
    overview = models.Overview.model_validate(api.get("/overview").json())
    assert [(row.name, row.state, row.sources) for row in overview.tables] == [
        ("public.big", "initializing", ["public.sales"]),
        ("public.sales", "initializing", ["public.orders"]),
    ]
    assert (overview.counts.total, overview.counts.initializing, overview.is_served) == (2, 2, False)
    assert overview.sentence == "No sidecar serves this database, so nothing is refreshed."


def test_the_overview_of_nothing_says_so(api):
    overview = models.Overview.model_validate(api.get("/overview").json())
    assert (overview.tables, overview.sentence) == ([], "There are no stream tables yet.")


def test_an_overview_that_the_client_has_is_not_sent_again(api, shop):
    first = api.get("/overview")
    again = api.get("/overview", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert api.get("/overview", token=True).headers["ETag"] != first.headers["ETag"]


def test_the_overview_follows_what_others_do(api, shop, app):
    assert api.row("public.sales")["state"] == "initializing"
    app.execute("select pgtrickle.alter_stream_table('sales', status => 'SUSPENDED')")
    app.execute("select pgtrickle.drop_stream_table('big')")

    def tables() -> list[tuple[str, str]]:
        return [(row["name"], row["state"]) for row in api.get("/overview").json()["tables"]]

    # the overview may be read between the two
    eventually(lambda: tables() == [("public.sales", "suspended")])


def test_refreshed_stream_tables_are_fresh_and_have_a_history(api, served):
    row = models.TableRow.model_validate(api.row("public.sales"))
    assert (row.state, row.status, row.is_populated, row.staleness_seconds) == ("fresh", "ACTIVE", True, 0)
    assert row.last is not None
    assert (row.last.action, row.last.rows_inserted) == ("REINITIALIZE", 2)
    assert [letter for _, letter in row.recent] == ["R"]
    history = [models.Refresh.model_validate(one) for one in api.get("/tables/sales/history").json()]
    assert [(one.name, one.action, one.status) for one in history] == [
        ("public.sales", "REINITIALIZE", "COMPLETED")
    ]
    timeline = [models.Refresh.model_validate(one) for one in api.get("/timeline?limit=5").json()]
    assert {one.name for one in timeline} == {"public.big", "public.sales"}
    assert api.get("/timeline", params={"since": "2999-01-01T00:00:00Z"}).json() == []
    assert len(api.get("/timeline?limit=1").json()) == 1


def test_one_stream_table_has_its_definition_and_its_plan(api, served):
    detail = models.TableDetail.model_validate(api.get("/tables/public.sales").json())
    assert [column.name for column in detail.columns] == ["region", "total"]
    assert [column.type for column in detail.columns] == ["text", "bigint"]
    assert [(one.name, one.kind, one.cdc_mode) for one in detail.sources] == [
        ("public.orders", "table", "trigger")
    ]
    assert (detail.readers, detail.defined_by, detail.state) == (["public.big"], "app", "fresh")
    assert detail.options["schedule"] == "1s"
    assert "sum(amount)" in detail.query


def test_a_plan_lists_its_operators(api, orders, app):
    app.execute(
        "select pgtrickle.create_stream_table('pairs', 'select o.id from orders o"
        " join orders p on p.region = o.region')"
    )
    app.commit()
    with sidecar_of(api):
        # while it is loaded, the plan cannot be told
        eventually(lambda: api.get("/tables/pairs").json()["plan_error"] is None)
        detail = models.TableDetail.model_validate(api.get("/tables/pairs").json())
    assert [(line.depth, line.kind) for line in detail.operators][:2] == [(0, "bilinear"), (1, "linear")]
    assert detail.missing_indexes == ["create index on public.orders (region)"]


def test_names_are_sql_and_encoded_in_paths(api, source, app, admin):
    source('"Big Orders"("Id" int primary key)', rows=[(1,)])
    admin.execute('create schema "odd/shop" authorization app; grant usage on schema "odd/shop" to trickle')
    app.execute(
        'select pgtrickle.create_stream_table(\'"odd/shop"."Über, ""Sales""?"\','
        ' \'select "Id" from "Big Orders"\')'
    )
    app.commit()
    name = '"odd/shop"."Über, ""Sales""?"'
    assert [row["name"] for row in api.get("/overview").json()["tables"]] == [name]
    answer = api.get(f"/tables/{quote(name, safe='')}")
    assert (answer.status_code, answer.json()["name"]) == (200, name)
    assert api.get(f"/tables/{quote(name, safe='')}/history").status_code == 200
    assert api.get(f"/tables/{quote(name, safe='')}/rows", token=True).json()["columns"][0]["name"] == "Id"


def test_the_graph_has_sources_stream_tables_and_edges(api, shop):
    graph = models.Graph.model_validate(api.get("/graph").json())
    assert {(node.id, node.kind, node.state) for node in graph.nodes} == {
        ("public.orders", "source", None),
        ("public.sales", "stream_table", "initializing"),
        ("public.big", "stream_table", "initializing"),
    }
    assert [(edge.from_, edge.to) for edge in graph.edges] == [
        ("public.sales", "public.big"),
        ("public.orders", "public.sales"),
    ]


def test_views_over_stream_tables_end_the_graph(api, shop, app):
    app.execute(
        "create view shown as select * from sales; create materialized view kept as select * from shown"
    )
    app.commit()
    graph = models.Graph.model_validate(api.get("/graph").json())
    readers = [(node.id, node.relation_kind) for node in graph.nodes if node.kind == "reader"]
    assert readers == [("public.shown", "view")]
    assert ("public.sales", "public.shown") in [(edge.from_, edge.to) for edge in graph.edges]


def test_capture_tells_who_lags(api, served, app):
    app.execute("select pgtrickle.gate_source('orders')")
    app.commit()
    served.change("insert into orders values (3, 'north', 1)")
    sources = [models.CapturedSource.model_validate(one) for one in api.get("/capture").json()]
    found = {one.source: one for one in sources}["public.orders"]
    assert (found.kind, found.cdc_mode, found.triggers_ok, found.gated) == ("table", "trigger", True, True)
    assert [(reader.table, reader.pending_rows) for reader in found.readers] == [("public.sales", 1)]


def test_the_sidecar_of_the_server_is_marked(api, served):
    def sidecars():
        return [models.Sidecar.model_validate(one) for one in api.get("/sidecars").json()]

    eventually(lambda: len(sidecars()) == 1)
    assert [one.is_this for one in sidecars()] == [True]


def test_caches_can_be_read(api, shop):
    assert [models.CachedQueries.model_validate(one) for one in api.get("/caches").json()] == []


def test_rows_are_text_and_long_values_are_cut(api, source, app):
    source(
        "wide(id int primary key, note text, at timestamptz, tags int[], doc jsonb)",
        rows=[(1, "x" * 5000, "2026-01-02 03:04:05+00", [1, 2], '{"a": 1}'), (2, None, None, None, None)],
    )
    app.execute("select pgtrickle.create_stream_table('wides', 'select * from wide', '1s', 'FULL')")
    app.commit()
    with sidecar_of(api):
        eventually(lambda: api.row("public.wides")["is_populated"])
    found = models.RowSet.model_validate(api.get("/tables/wides/rows", token=True).json())
    assert [column.type for column in found.columns] == [
        "integer",
        "text",
        "timestamp with time zone",
        "integer[]",
        "jsonb",
    ]
    rows = {row[0]: row for row in found.rows}
    assert rows["1"] == ["1", "x" * 2000 + "…", "2026-01-02 03:04:05+00", "{1,2}", '{"a": 1}']
    assert rows["2"] == ["2", None, None, None, None]
    assert found.is_truncated is False
    cut = models.RowSet.model_validate(api.get("/tables/wides/rows?limit=1", token=True).json())
    assert (len(cut.rows), cut.is_truncated) == (1, True)


def test_health_and_readiness(api):
    assert api.get("/healthz").json() == {"ok": True}
    assert api.get("/readyz").json() == {"ready": True, "checks": {"database": "ok", "installation": "ok"}}


def test_a_sidecar_that_does_not_poll_is_not_ready(api):
    api.server.context.readiness.engine = build_engine(api.settings, no_spark)
    answer = api.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert answer.json()["checks"]["scheduler"] == "it has not started yet"


def test_a_serving_sidecar_is_ready(api, served):
    eventually(lambda: api.get("/readyz").status_code == 200)
    checks = api.get("/readyz").json()["checks"]
    assert checks == {"database": "ok", "installation": "ok", "scheduler": "ok", "spark": "starting"}


@pytest.mark.parametrize("path", ["/tables/nope", "/tables/nope/history"])
def test_what_does_not_exist_is_not_found(api, path):
    answer = api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "PGT-S002")
