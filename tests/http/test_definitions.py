"""Definitions as text, adoption and advice by HTTP."""

from __future__ import annotations

import pytest

from pgtrickle.interfaces.cli.application import COMMANDS
from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.access_table import ACCESS, API
from tests.fixtures.databases import APP

VIEW = "create materialized view totals as select region, sum(amount) as total from orders group by region"
ELSEWHERE = {
    "list": "overview",
    "status": "overview",
    "top": "overview",
    "create": "tables",
    "alter": "tables/{name}",
    "drop": "tables/{name}",
    "explain": "tables/{name}",
    "advise": "advice",
}
"""Commands whose path has another name."""
NOT_BY_HTTP = {"install", "uninstall", "run", "sql", "attach", "detach", "declare", "attached"}
"""A server needs an installation and a sidecar, and statements have paths of their own. Attaching a database
lends the rights of the sidecar there, which only the owner of pgtrickle does."""


@pytest.fixture
def api(serve, database):
    return serve(http_dsn=database.dsn(APP))


@pytest.mark.parametrize("command", sorted({name for name, _ in COMMANDS} - NOT_BY_HTTP))
def test_every_command_has_a_path(command):
    paths = {path for _, path in ACCESS}
    tail = ELSEWHERE.get(command, command)
    wanted = {f"{API}/{tail}", f"{API}/tables/{{name}}/{tail}", f"{API}/sources/{{name}}/{tail}"}
    assert wanted & paths, f"add a route for {command}"


def test_what_is_exported_can_be_applied(api, shop):
    text = models.Definitions.model_validate(api.get("/export").json()).definitions
    assert "CREATE STREAM TABLE public.sales" in text
    assert "public.big" not in api.get("/export?name=sales").json()["definitions"]
    assert {one["action"] for one in api.post("/apply", {"definitions": text}).json()} == {"none"}
    api.send("DELETE", "/tables/big")
    planned = api.post("/apply", {"definitions": text, "dry_run": True}).json()
    assert {(one["name"], one["action"]) for one in planned} == {
        ("public.sales", "none"),
        ("public.big", "create"),
    }
    assert api.get("/tables/big").status_code == 404
    done = [
        models.PlannedChange.model_validate(one) for one in api.post("/apply", {"definitions": text}).json()
    ]
    assert [one.name for one in done if one.action == "create"] == ["public.big"]
    assert api.get("/tables/big").status_code == 200


def test_a_bad_definition_is_refused_and_nothing_is_applied(api, orders):
    text = "create stream table a as select id from orders; create stream table b as select nope from orders;"
    assert api.post("/apply", {"definitions": text}).status_code == 422
    assert api.get("/overview").json()["tables"] == []


def test_a_materialized_view_is_listed_planned_and_adopted(api, orders, app):
    app.execute(
        "create materialized view totals as select region, sum(amount) as total from orders group by 1"
    )
    app.commit()
    (view,) = [models.MaterializedView.model_validate(one) for one in api.get("/materialized-views").json()]
    assert (view.name, view.owner, view.is_own) == ("public.totals", "app", True)
    planned = models.Adoption.model_validate(api.post("/adopt", {"name": "totals", "dry_run": True}).json())
    assert planned.plan is not None
    assert (planned.plan.effective_mode, planned.table) == ("DIFFERENTIAL", None)
    done = api.post("/adopt", {"name": "totals", "schedule": "3s"})
    assert done.status_code == 200, done.text
    adopted = models.Adoption.model_validate(done.json())
    assert adopted.table is not None
    assert (adopted.table.name, adopted.table.schedule) == ("public.totals", "3s")
    assert api.get("/materialized-views").json() == []


def test_advice_ranks_materialized_views(api, orders, app):
    app.execute(
        "create materialized view totals as select region, sum(amount) as total from orders group by 1"
    )
    app.commit()
    advice = models.Advice.model_validate(api.get("/advice", token=True).json())
    assert "totals" in advice.candidates[0].name


def test_the_doctor_lists_what_it_found(api, shop):
    answer = api.get("/doctor", token=True)
    assert answer.status_code == 200, answer.text
    found = [models.Finding.model_validate(one) for one in answer.json()]
    assert {"connection", "catalog"} <= {one.check for one in found}
