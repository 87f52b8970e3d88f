"""Dashboard and alert rules use metrics that exist; promtool accepts them, and a real scrape."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgtrickle.interfaces.metrics import Metrics, gathering
from pgtrickle.interfaces.metrics.definitions import METRICS, Kind
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "monitoring"
RULES = MONITORING / "prometheus" / "alerts.yml"
RULES_TEST = MONITORING / "prometheus" / "alerts_test.yml"
DASHBOARD = MONITORING / "grafana" / "pgtrickle.json"
PAGE = ROOT / "docs" / "MONITORING.md"
SERIES = {name: metric for metric in METRICS for name in metric.series}


@pytest.fixture(scope="session")
def promtool():
    """Runs promtool, and returns what it says."""
    program = shutil.which("promtool", path=f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}")
    if program is None:
        pytest.skip("promtool is not installed here (make promtool; Debian, Ubuntu: prometheus)")

    def run(*arguments: str | Path, given: bytes | None = None) -> str:
        done = subprocess.run([program, *arguments], input=given, capture_output=True, check=False)
        said = (done.stdout + done.stderr).decode()
        assert done.returncode == 0, said
        return said

    return run


def dashboard_expressions() -> Iterator[str]:
    """Every query of the dashboard, with its variables replaced."""

    def find(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, part in value.items():
                if key == "expr":
                    yield part
                else:
                    yield from find(part)
        elif isinstance(value, list):
            for part in value:
                yield from find(part)

    for expression in find(json.loads(DASHBOARD.read_text())):
        yield re.sub(r"\$(job|instance)", ".*", expression.replace("$__rate_interval", "5m"))


def test_promtool_accepts_the_rules_and_their_tests_pass(promtool):
    promtool("check", "rules", RULES)
    promtool("check", "config", RULES.with_name("prometheus.yml"))
    assert "SUCCESS" in promtool("test", "rules", RULES_TEST)


def test_every_alert_has_a_test_in_which_it_fires():
    alerts = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    fired = set(re.findall(r"alertname: (\w+)\n        exp_alerts:\n", RULES_TEST.read_text()))
    assert alerts == fired


def test_promtool_accepts_every_query_of_the_dashboard(promtool, tmp_path):
    rules = [
        {"record": f"panel_{number}", "expr": expression}
        for number, expression in enumerate(dashboard_expressions())
    ]
    assert len(rules) > 20
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", file)


@pytest.mark.parametrize("file", [RULES, RULES_TEST, DASHBOARD], ids=lambda file: file.name)
def test_every_metric_that_is_used_exists(file):
    used = set(re.findall(r"\bpgtrickle_\w+", file.read_text()))
    assert len(used) > 10
    assert used - SERIES.keys() == set()


def test_the_dashboard_shows_every_metric():
    used = set(re.findall(r"\bpgtrickle_\w+", DASHBOARD.read_text()))
    assert {metric.name for metric in METRICS if not metric.series & used} == set()


def test_labels_that_are_used_belong_to_the_metric():
    given = {"job", "instance", "le"}
    for expression in [*dashboard_expressions(), *re.findall(r"expr: (.*)", RULES.read_text())]:
        for name, matchers in re.findall(r"\b(pgtrickle_\w+)\{(.*?)\}", expression):
            labels = set(re.findall(r"(\w+)\s*[=!]~?", matchers))
            assert labels <= given | set(SERIES[name].labels), expression


def test_panels_do_not_overlap_and_have_ids_of_their_own():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    places = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_promtool_accepts_a_real_scrape(promtool, source, app, engine, monkeypatch):
    monkeypatch.setattr(gathering, "ROUND_SECONDS", 0.1)
    orders = source("orders(id int primary key, region text)", rows=[(1, "north")])
    app.execute(
        "select pgtrickle.create_stream_table('\"Odd \"\"name\"\"\"', 'select id, region from orders', '1s')"
    )
    metrics = Metrics(engine)
    with running(engine, metrics.note) as sidecar:
        metrics.watch(sidecar.loop)
        orders.change("insert into orders values (2, 'south')")
        eventually(lambda: sidecar.has_refreshed('Odd "name"'))
        eventually(lambda: b"pgtrickle_change_buffer_bytes{" in metrics.render())
        text = metrics.render()
    metrics.close()
    assert b'table="public.\\"Odd \\"\\"name\\"\\"\\""' in text
    assert promtool("check", "metrics", given=text) == ""


def test_the_page_lists_every_metric_and_every_alert():
    page = PAGE.read_text()
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        line = f"| `{metric.shown_name}` | {metric.kind.value} | {labels} | {metric.help} |"
        assert line in page, f"docs/MONITORING.md lacks: {line}"
    named = set(re.findall(r"`(pgtrickle_\w+)`", page))
    assert named <= SERIES.keys() | {metric.shown_name for metric in METRICS if metric.kind is not Kind.GAUGE}
    for alert in re.findall(r"- alert: (\w+)", RULES.read_text()):
        assert f"`{alert}`" in page
