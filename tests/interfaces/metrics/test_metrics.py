"""The metrics of a sidecar say what it does, and are bounded however many tables there are."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pgtrickle.interfaces.metrics import Metrics, gathering
from pgtrickle.interfaces.metrics import metrics as metrics_module
from pgtrickle.interfaces.metrics.definitions import METRICS
from pgtrickle.model.errors import BadSetting, ConnectionFailed, RefreshFailed
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import Loop, RefreshEvent
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

AT = datetime(2026, 1, 31, tzinfo=UTC)
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(metrics: Metrics) -> Series:
    """Every series of a scrape with its value."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return scraped(metrics).get((f"pgtrickle_{name}", tuple(sorted(labels.items()))))


def refreshed(name: str, action: Action = Action.DIFFERENTIAL, **more: float) -> RefreshEvent:
    table = RelationName("public", name)
    return RefreshEvent(table, AT, outcome=RefreshOutcome(table, action, 3, 1, 20.0, "why", **more))


def no_spark():
    raise AssertionError("nothing here needs Spark")


@pytest.fixture
def idle_engine():
    engine = Engine("postgresql://nobody@127.0.0.1:1/nothing", no_spark)
    yield engine
    engine.close()


@pytest.fixture
def counted(idle_engine):
    """Metrics of an engine that reaches nothing, for what is counted from events."""
    metrics = Metrics(idle_engine, max_tables=2)
    metrics.gathering.close()
    return metrics


def test_refreshes_are_counted_by_table_strategy_and_outcome(counted):
    counted.note(refreshed("a"))
    counted.note(refreshed("a", Action.NO_DATA))
    failed = RefreshEvent(RelationName("public", "a"), AT, error=RefreshFailed("no"), attempted=Action.FULL)
    counted.note(failed)
    table = "public.a"
    for strategy, outcome in (("differential", "completed"), ("no_data", "completed"), ("full", "failed")):
        assert value(counted, "refreshes_total", table=table, strategy=strategy, outcome=outcome) == 1
    assert value(counted, "refresh_failures_total", code="PGT-R003") == 1
    assert value(counted, "refresh_rows_total", table=table, change="inserted") == 3
    assert value(counted, "refresh_rows_total", table=table, change="deleted") == 1
    assert value(counted, "table_refresh_seconds_total", table=table) == pytest.approx(0.04)


def test_durations_are_histograms_by_phase(counted):
    counted.note(refreshed("a", read_ms=3.0, compute_ms=0.0, apply_ms=7000.0, wait_ms=0.5, commit_ms=1.0))
    found = scraped(counted)
    phases = {labels[1][1] for (name, labels) in found if name == "pgtrickle_refresh_phase_seconds_bucket"}
    assert phases == {"wait", "read", "apply", "commit"}, "what took no time at all was not done"
    assert value(counted, "refresh_phase_seconds_bucket", phase="read", le="0.0025") == 0
    assert value(counted, "refresh_phase_seconds_bucket", phase="read", le="0.005") == 1
    assert value(counted, "refresh_phase_seconds_bucket", phase="apply", le="+Inf") == 1
    assert value(counted, "refresh_phase_seconds_sum", phase="apply") == 7.0
    assert value(counted, "refresh_seconds_count", strategy="differential") == 1


def test_tables_beyond_the_limit_are_counted_together(counted):
    for number in range(50):
        for name in ("a", "b", f"t{number}"):
            counted.note(refreshed(name))
    labels = {dict(labels).get("table") for (_, labels) in scraped(counted)} - {None}
    assert labels == {"public.a", "public.b", "other"}
    assert (
        value(counted, "refreshes_total", table="other", strategy="differential", outcome="completed") == 50
    )


def test_outages_are_counted_when_they_begin(counted):
    nobody = RelationName("", "")
    counted.note(RefreshEvent(nobody, AT, error=ConnectionFailed("no"), subject="database"))
    counted.note(RefreshEvent(nobody, AT, note="back", subject="database"))
    assert value(counted, "outages_total", subject="database") == 1
    assert value(counted, "outages_total", subject="spark") == 0


def test_a_sidecar_without_database_can_be_scraped(counted, idle_engine):
    counted.watch(Loop(idle_engine, counted.note))
    assert value(counted, "up", subject="database") == 0
    assert value(counted, "connections_limit") == 10
    assert value(counted, "build_info", version="0.1.0", python=sys.version.split()[0]) == 1


def test_without_the_package_metrics_are_refused(idle_engine, monkeypatch):
    monkeypatch.setattr(metrics_module, "find_spec", lambda name: None)
    with pytest.raises(BadSetting, match="not installed") as refused:
        Metrics(idle_engine)
    assert "pgtrickle[http]" in str(refused.value)


def test_a_sidecar_without_metrics_imports_none_of_it():
    program = (
        "import sys\nimport pgtrickle.commands.run, pgtrickle.interfaces.metrics\n"
        "sys.exit('prometheus_client' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10)])


@pytest.fixture
def served(orders, app, engine, monkeypatch):
    """The metrics of a sidecar that has a stream table to follow."""
    monkeypatch.setattr(gathering, "ROUND_SECONDS", 0.1)
    query = "select region, sum(amount) as total from orders group by region"
    app.execute("select pgtrickle.create_stream_table('sales', %s, '1s')", (query,))
    metrics = Metrics(engine)
    with running(engine, metrics.note) as sidecar:
        metrics.watch(sidecar.loop)
        eventually(lambda: sidecar.has_refreshed("sales"))
        yield metrics
    metrics.close()


def test_every_metric_of_a_sidecar_at_work_is_one_of_ours_and_none_is_missing(served, orders, app):
    orders.change("insert into orders values (2, 'south', 5)")
    eventually(lambda: len(app.execute("select from sales").fetchall()) == 2)
    app.execute("select pgtrickle.create_stream_table('bad', 'select 1 / (id - 1) as x from orders', '1s')")
    eventually(lambda: value(served, "refresh_failures_total", code="PGT-R003") is not None)
    eventually(lambda: value(served, "jvm_heap_bytes", area="used") is not None)
    ours = {name for metric in METRICS for name in metric.series}
    # Spark of the tests has no process of its own here, or has one: both are right
    optional = {"pgtrickle_jvm_resident_bytes"}
    found = {name for name, _ in scraped(served) if name.startswith("pgtrickle_")}
    assert found - ours == set()
    assert ours - found - optional == set()


def test_freshness_is_measured_against_the_schedule(served, orders, app):
    eventually(lambda: value(served, "tables", status="active") == 1)
    assert value(served, "table_schedule_seconds", table="public.sales") == 1
    app.execute("select pgtrickle.alter_stream_table('sales', schedule => '1h')")
    eventually(lambda: value(served, "table_schedule_seconds", table="public.sales") == 3600)
    orders.change("insert into orders values (2, 'south', 5)")
    eventually(lambda: (value(served, "table_staleness_seconds", table="public.sales") or 0) > 0.2)
    eventually(lambda: (value(served, "capture_lag_seconds", source="public.orders") or 0) > 0.2)
    assert value(served, "tables_behind") == 1
    assert value(served, "tables_late") == 0
    eventually(lambda: (value(served, "change_buffer_bytes", source="public.orders") or 0) > 0)
    before = app.execute("select pgtrickle.get_staleness('sales')").fetchone()[0]
    shown = value(served, "table_staleness_seconds", table="public.sales")
    after = app.execute("select pgtrickle.get_staleness('sales')").fetchone()[0]
    assert before - 2 <= shown <= after + 2
    app.execute("select pgtrickle.alter_stream_table('sales', schedule => '1s')")
    eventually(lambda: value(served, "table_staleness_seconds", table="public.sales") == 0)


def test_buffers_are_gathered_only_while_somebody_scrapes(engine, orders, monkeypatch):
    monkeypatch.setattr(gathering, "ROUND_SECONDS", 0.01)
    now, rounds = [0.0], list[int]()
    found = gathering.Gathering(engine, lambda: now[0])
    gather = found.gather

    def counted():
        rounds.append(1)
        return gather()

    monkeypatch.setattr(found, "gather", counted)
    assert found.latest() is None
    eventually(lambda: found.latest() is not None)
    now[0] += gathering.IDLE_SECONDS + 1
    eventually(lambda: found._thread is None)
    before = len(rounds)
    assert found.latest() is None, "what is that old is not shown"
    eventually(lambda: len(rounds) > before)
    found.close()
