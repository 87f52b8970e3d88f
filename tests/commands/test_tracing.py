"""Spans tell what a sidecar does, to who asked for them, and cost nothing otherwise."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from pgtrickle.catalog.tables import find
from pgtrickle.commands import tracing
from pgtrickle.commands.tracing import OpenTelemetryTracer, open_tracer
from pgtrickle.model.errors import BadSetting, Busy, RefreshFailed
from pgtrickle.model.stream_table import Action
from pgtrickle.model.tracing import NO_TRACER
from pgtrickle.refresh.story import Failure, refresh_all
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually


@pytest.fixture
def spans():
    """The spans so far, in the order in which they ended, and a tracer that collects them."""
    return InMemorySpanExporter()


@pytest.fixture
def tracer(spans):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    yield OpenTelemetryTracer(provider)
    provider.shutdown()


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, customer int)", rows=[(1, 1), (2, 1), (3, 2)])


def tree(spans: InMemorySpanExporter) -> dict[str, str | None]:
    """The name of the parent of each span, by the name of the span."""
    finished = spans.get_finished_spans()
    names = {span.context.span_id: span.name for span in finished}
    return {span.name: names.get(span.parent.span_id) if span.parent else None for span in finished}


@pytest.mark.light
def test_a_refresh_is_a_span_around_its_steps(orders, stream_table, engine, tracer, spans):
    counts = stream_table("select customer, count(*) as n from orders group by customer")
    engine.tracer = tracer
    orders.change("insert into orders values (4, 2)")
    counts.refresh()
    steps = ("claim", "read", "compute", "apply", "commit")
    assert tree(spans) == {"refresh": None, **dict.fromkeys(steps, "refresh")}
    refresh = spans.get_finished_spans()[-1]
    found = dict(refresh.attributes or {})
    assert found.pop("pgtrickle.milliseconds") > 0
    assert found == {
        "pgtrickle.tables": ("public.stream_1",),
        "pgtrickle.initiated_by": "test",
        "pgtrickle.table": "public.stream_1",
        "pgtrickle.strategy": "DIFFERENTIAL",
        "pgtrickle.rows_inserted": 1,
        "pgtrickle.rows_deleted": 1,
    }


def test_tables_that_are_refreshed_together_are_one_span_with_an_event_for_each(
    orders, stream_table, engine, tracer, spans
):
    good = stream_table("select id from orders where customer = 1")
    bad = stream_table("select id, 1 / (customer - 7) as n from orders")
    engine.tracer = tracer
    orders.change("insert into orders values (4, 1), (5, 7)")
    with engine.connection() as connection:
        ids = [find(connection, table.name).id for table in (good, bad)]
    results = refresh_all(engine, ids, initiated_by="test", waits=True)
    assert [isinstance(result, Failure) for result in results] == [False, True]
    refresh = spans.get_finished_spans()[-1]
    assert [(event.name, dict(event.attributes or {})["pgtrickle.table"]) for event in refresh.events] == [
        ("refreshed", "public.stream_1"),
        ("failed", "public.stream_2"),
    ]
    assert refresh.status.status_code is StatusCode.ERROR
    assert refresh.status.description == "PGT-R003"
    assert "division" not in refresh.to_json()


def test_a_tick_is_a_span(orders, stream_table, engine, tracer, spans):
    stream_table("select id from orders")
    engine.tracer = tracer
    with running(engine):
        eventually(lambda: "tick" in tree(spans))
    assert tree(spans)["tick"] is None


def test_the_message_of_an_error_is_not_in_its_span(tracer, spans):
    with pytest.raises(RefreshFailed), tracer.span("refresh"):
        raise RefreshFailed("the value 42 is secret")
    with pytest.raises(KeyError), tracer.span("read"):
        raise KeyError("secret")
    with pytest.raises(Busy), tracer.span("claim"), tracer.span("wait"):
        raise Busy("secret")
    refresh, read, wait, claim = spans.get_finished_spans()
    assert [span.status.description for span in (refresh, read, wait, claim)] == [
        "PGT-R003",
        None,
        Busy.code,
        Busy.code,
    ]
    assert dict(read.attributes or {}) == {"pgtrickle.ended_by": "KeyError"}
    assert not any("secret" in span.to_json() for span in (refresh, read, wait, claim))


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "shop"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_collected_unless_the_environment_says_so(environment):
    assert open_tracer(environment) is NO_TRACER


def test_an_exporter_that_nobody_knows_is_refused():
    with pytest.raises(BadSetting, match="jaeger"):
        open_tracer({"OTEL_TRACES_EXPORTER": "jaeger"})


def test_without_the_packages_spans_are_refused_or_left_out_with_a_warning(monkeypatch, caplog):
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    with pytest.raises(BadSetting, match="not installed") as refused:
        open_tracer({}, is_wanted=True)
    assert "pgtrickle[tracing]" in str(refused.value)
    assert open_tracer({"OTEL_TRACES_EXPORTER": "otlp"}) is NO_TRACER
    assert "pgtrickle[tracing]" in caplog.text


def test_spans_reach_a_collector_that_only_the_environment_names(monkeypatch):
    received = threading.Event()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if b"refresh" in body and b"the shop" in body:
                received.set()
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_SERVICE_NAME": "the shop",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    try:
        found = open_tracer(environment)
        with found.span("refresh", table="public.sales"):
            pass
        found.close()
        assert received.wait(90)
    finally:
        server.shutdown()
        server.server_close()


def test_a_sidecar_without_traces_imports_none_of_it():
    program = (
        "import sys\nfrom pgtrickle.commands.engine import build_engine\n"
        "from pgtrickle.model.settings import Settings\n"
        "build_engine(Settings(), lambda: None).close()\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_needs_no_work_has_a_span_too(orders, stream_table, engine, tracer, spans):
    counts = stream_table("select id from orders")
    engine.tracer = tracer
    assert counts.refresh().action is Action.NO_DATA
    assert set(tree(spans)) == {"refresh", "claim", "read", "commit"}
