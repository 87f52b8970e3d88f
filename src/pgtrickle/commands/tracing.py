"""Sends spans to OpenTelemetry. Its packages are imported only if somebody wants spans.

Spans have the names of stream tables, counts and codes of errors; never rows, queries or messages.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pgtrickle import __version__
from pgtrickle.model.errors import BadSetting, PgTrickleError
from pgtrickle.model.tracing import NO_TRACER, Span, SpanValue, Tracer
from pgtrickle.postgres.connection import DatabaseError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan

LOG: Final = logging.getLogger("pgtrickle")
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
ADDRESSES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_MISSING: Final = "sending spans needs packages that are not installed"
_REMEDY: Final = "pip install 'pgtrickle[tracing]'"


def open_tracer(environment: Mapping[str, str], *, is_wanted: bool = False) -> Tracer:
    """The tracer of a process; one that collects nothing, unless it `is_wanted` or the environment says so.

    A program that has set up OpenTelemetry itself gets the spans in its own provider.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return NO_TRACER
    if not is_wanted and not _is_configured(environment):
        return NO_TRACER
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        if is_wanted:
            raise BadSetting(_MISSING, hint=_REMEDY)
        LOG.warning("The environment asks for spans, but %s: %s", _MISSING, _REMEDY)
        return NO_TRACER
    provider, is_ours = _provider(environment)
    return OpenTelemetryTracer(provider, is_ours=is_ours)


def _is_configured(environment: Mapping[str, str]) -> bool:
    exporter = environment.get(EXPORTER, "").strip().lower()
    return exporter != "none" and bool(exporter or any(environment.get(name) for name in ADDRESSES))


def _provider(environment: Mapping[str, str]) -> tuple[TracerProvider, bool]:
    """The provider of the program, or one of our own that follows the OTEL_ variables, and whether it is."""
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    present = trace.get_tracer_provider()
    if isinstance(present, TracerProvider):
        return present, False
    attributes: dict[str, str] = {"service.version": __version__}
    if not environment.get("OTEL_SERVICE_NAME"):
        attributes["service.name"] = "pgtrickle"
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    match environment.get(EXPORTER, "").strip().lower():
        case "none":
            pass
        case "console":
            provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
        case "" | "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        case other:
            raise BadSetting(f"{EXPORTER} cannot be {other!r}", hint="it must be otlp, console or none")
    return provider, True


class OpenTelemetryTracer:
    """Collects spans in a provider of OpenTelemetry."""

    def __init__(self, provider: TracerProvider, *, is_ours: bool = False) -> None:
        self._provider, self._is_ours = provider, is_ours
        self._tracer = provider.get_tracer("pgtrickle", __version__)

    @contextmanager
    def span(self, name: str, **values: SpanValue) -> Iterator[Span]:
        """A span until the block ends, inside the current one of the thread."""
        # the message of an exception may quote rows, so OpenTelemetry must not record it
        with self._tracer.start_as_current_span(
            name, attributes=_attributes(values), record_exception=False, set_status_on_exception=False
        ) as found:
            span = _OpenSpan(found)
            try:
                yield span
            except (PgTrickleError, DatabaseError) as error:
                span.fail(error.code if isinstance(error, PgTrickleError) else error.sqlstate or "unknown")
                raise
            except Exception as ending:
                # a refresh that starts over in another way has not failed
                span.note(ended_by=type(ending).__name__)
                raise

    def close(self) -> None:
        """Send what is left, unless the program does that."""
        if self._is_ours:
            self._provider.shutdown()


@dataclass(frozen=True, slots=True)
class _OpenSpan:
    span: OtelSpan

    def note(self, **values: SpanValue) -> None:
        """Add values."""
        self.span.set_attributes(_attributes(values))

    def note_event(self, name: str, **values: SpanValue) -> None:
        """Add something that happened now."""
        self.span.add_event(name, _attributes(values))

    def fail(self, code: str) -> None:
        """Mark it as failed."""
        from opentelemetry.trace import Status, StatusCode

        self.span.set_attribute("error.type", code)
        self.span.set_status(Status(StatusCode.ERROR, code))


def _attributes(values: Mapping[str, SpanValue]) -> dict[str, Any]:
    return {f"pgtrickle.{name}": value for name, value in values.items()}
