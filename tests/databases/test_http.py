"""One server for several databases: a list, and the page, API and metrics of each."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from pgtrickle.interfaces.http.access_table import FLEET_ACCESS
from pgtrickle.interfaces.http.fleet_routes import build_top
from pgtrickle.model.http_settings import HttpAddress
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-tests-0123456789"


@pytest.fixture
def fleet(shop, run_fleet):
    """Two databases and the server that shows them."""
    first, second = shop(), shop()
    served = run_fleet(
        first.served(quota=2), second.served(), http=HttpAddress("127.0.0.1", 0), http_token=TOKEN
    )
    first.shows(0)
    second.shows(0)
    return served, first, second


def ask(served, path, *, method="GET", token=None, body=None):
    """The status and the content of an answer."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = json.dumps(body).encode() if body is not None else None
    request = Request(served.server.url.rstrip("/") + path, data, headers, method=method)
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_the_list_has_every_database_with_its_state(fleet):
    served, first, second = fleet
    status, text = ask(served, "/api/v1/databases")
    assert status == 200
    found = {one["name"]: one for one in json.loads(text)}
    assert found.keys() == {first.name, second.name}
    assert found[first.name]["state"] == "serving"
    assert (found[first.name]["quota"], found[first.name]["stream_tables"]) == (2, 1)
    assert "Loading the databases" in ask(served, "/")[1]


def test_each_database_has_its_page_and_its_api(fleet):
    served, first, second = fleet
    second.write(5)
    second.shows(5)
    for shop, total in ((first, 0), (second, 5)):
        place = f"/databases/{shop.name}"
        assert "Loading the stream tables" in ask(served, f"{place}/")[1]
        overview = json.loads(ask(served, f"{place}/api/v1/overview")[1])
        assert overview["database"] == shop.name
        assert [table["name"] for table in overview["tables"]] == ["public.sales"]
        status, rows = ask(served, f"{place}/api/v1/tables/sales/rows", token=TOKEN)
        assert (status, json.loads(rows)["rows"]) == (200, [[str(total)]]), rows


def test_what_needs_the_token_needs_it_for_every_database(fleet):
    served, first, _ = fleet
    place = f"/databases/{first.name}/api/v1"
    assert ask(served, f"{place}/tables/sales/rows")[0] == 401
    assert ask(served, f"{place}/drain", method="POST", body={})[0] == 401
    assert ask(served, f"{place}/drain", method="POST", body={}, token=TOKEN)[0] == 200
    assert first.app.execute("select pgtrickle.is_drained()").fetchall() == [(True,)]


@pytest.mark.parametrize("path", ["/databases/nothing/", "/databases/nothing/api/v1/overview", "/databases/"])
def test_a_database_that_is_not_served_is_not_found(fleet, path):
    served, _, _ = fleet
    status, text = ask(served, path)
    assert status == 404
    assert json.loads(text)["code"] == "PGT-H006"


def test_the_metrics_have_the_database_as_a_label(fleet):
    served, first, second = fleet
    first.write(1)
    first.shows(1)

    lines = ask(served, "/metrics")[1].splitlines()
    for shop in (first, second):
        assert f'pgtrickle_tables{{database="{shop.name}",status="active"}} 1.0' in lines
    assert sum(line.startswith("# TYPE pgtrickle_refreshes_total") for line in lines) == 1


def test_a_database_that_leaves_is_not_shown_any_more(fleet):
    served, first, second = fleet
    assert ask(served, f"/databases/{second.name}/api/v1/overview")[0] == 200
    served.fleet.remove(second.name)
    eventually(lambda: ask(served, f"/databases/{second.name}/api/v1/overview")[0] == 404)
    assert second.name not in ask(served, "/metrics")[1]
    assert ask(served, f"/databases/{first.name}/api/v1/overview")[0] == 200


def test_the_probes_say_whether_anything_is_served(fleet):
    served, _, _ = fleet
    assert ask(served, "/healthz")[0] == 200
    status, text = ask(served, "/readyz")
    # these tests have no Spark
    assert status == 503
    assert json.loads(text)["checks"] == {"spark": "starting", "databases": "ok, 2 of 2 are served"}


def test_every_route_at_the_top_says_what_it_needs(fleet):
    served, _, _ = fleet
    found = {
        (method, str(getattr(route, "path", "")))
        for route in build_top(served.server).routes
        for method in getattr(route, "methods", ())
    }
    assert found == set(FLEET_ACCESS)
