"""Spans: what a sidecar does, as it happens, for a program that collects traces. By default none does."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

SpanValue = str | bool | int | float | tuple[str, ...]
"""A value of a span. It never quotes a row, a query or an error message."""


class Span(Protocol):
    """Something that takes time, with values that become known meanwhile."""

    def note(self, **values: SpanValue) -> None:
        """Add values."""

    def note_event(self, name: str, **values: SpanValue) -> None:
        """Add something that happened now."""

    def fail(self, code: str) -> None:
        """Mark it as failed, with the code of the error."""


class Tracer(Protocol):
    """Collects spans."""

    def span(self, name: str, **values: SpanValue) -> AbstractContextManager[Span]:
        """A span until the block ends, inside the current one of the thread; an exception marks it failed."""

    def close(self) -> None:
        """Send what is left."""


class _NoSpan:
    __slots__ = ()

    def note(self, **values: SpanValue) -> None:
        pass

    def note_event(self, name: str, **values: SpanValue) -> None:
        pass

    def fail(self, code: str) -> None:
        pass


class NoTracer:
    """Collects nothing."""

    __slots__ = ()

    def span(self, name: str, **values: SpanValue) -> AbstractContextManager[Span]:
        """Nothing."""
        return _NOTHING

    def close(self) -> None:
        """Nothing is left."""


_NOTHING: Final[AbstractContextManager[Span]] = nullcontext(_NoSpan())
NO_TRACER: Final = NoTracer()
