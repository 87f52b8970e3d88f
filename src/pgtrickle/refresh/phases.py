"""Measures the phases of a refresh: every moment belongs to the innermost phase that is being measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pgtrickle.model.phases import Phase, PhaseTimes
from pgtrickle.model.tracing import NO_TRACER, Tracer


@dataclass(slots=True)
class PhaseClock:
    """The clock of one refresh, used by one thread."""

    tracer: Tracer = NO_TRACER
    seconds: Callable[[], float] = time.perf_counter
    _phase: Phase | None = field(default=None, init=False)
    _since: float = field(init=False)
    _taken: dict[Phase | None, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._since = self.seconds()

    @contextmanager
    def measure(self, phase: Phase) -> Iterator[None]:
        """Charge the block to a phase, except for what is measured inside of it."""
        outer = self._phase
        self._enter(phase)
        try:
            if outer is phase:
                yield
            else:
                with self.tracer.span(phase.value):
                    yield
        finally:
            self._enter(outer)

    def take(self) -> PhaseTimes:
        """The time since the last call, by phase."""
        self._enter(self._phase)
        found, self._taken = self._taken, {}
        return PhaseTimes(
            1000 * found.get(Phase.READ, 0.0),
            1000 * found.get(Phase.COMPUTE, 0.0),
            1000 * found.get(Phase.APPLY, 0.0),
            1000 * found.get(None, 0.0),
        )

    def _enter(self, phase: Phase | None) -> None:
        now = self.seconds()
        self._taken[self._phase] = self._taken.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now
