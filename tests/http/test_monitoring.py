"""Checks, alerts and metrics by HTTP."""

from __future__ import annotations

import re

from pgtrickle.interfaces.http import models
from tests.fixtures.waiting import eventually
from tests.http.test_events import listening


def test_the_checks_of_the_installation_are_listed(api, shop):
    checks = [models.HealthCheck.model_validate(one) for one in api.get("/health").json()]
    assert {check.severity for check in checks} <= {"OK", "WARN", "ERROR"}
    assert checks


def test_kept_alerts_are_listed_since_a_moment(api, shop, admin):
    admin.execute("select pgtrickle_internal.emit_alert('test_alert', '{\"n\": 1}')")
    found = [models.Alert.model_validate(one) for one in api.get("/alerts").json()]
    assert [(one.event, one.details["n"]) for one in found] == [("test_alert", 1)]
    assert api.get("/alerts", params={"since": "2999-01-01T00:00:00Z"}).json() == []


def test_alerts_are_events(api, shop, admin):
    admin.execute("select pgtrickle_internal.emit_alert('old_alert', '{}')")
    api.get("/overview")
    with listening(api) as events:
        next(events)
        admin.execute("select pgtrickle_internal.emit_alert('new_alert', '{}')")
        alert = models.Alert.model_validate(next(e for e in events if e.kind == "alert").data)
        assert alert.event == "new_alert"


def test_metrics_are_those_of_the_sidecar(api, served):
    answer = api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found = re.search(r'pgtrickle_tables{status="active"} (\S+)', answer.text)
    assert found is not None
    assert float(found[1]) == 2
    eventually(lambda: 'outcome="completed"' in api.get("/metrics").text)


def test_a_server_without_a_sidecar_has_no_metrics(api):
    answer = api.get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (404, "PGT-H006")
