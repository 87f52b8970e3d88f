"""The worker pool: threads that take units from a queue, the most urgent first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from pgtrickle.scheduler.policy.units import Unit
from pgtrickle.scheduler.policy.urgency import Queue, Urgency
from pgtrickle.scheduler.service.worker_shares import WorkerShare

MAX_STARTED = 4
"""The number of threads if each is started for one unit."""


@dataclass(slots=True)
class _Task:
    unit: Unit
    urgency: Urgency
    waits_for: int = 0
    holds_up: list[_Task] = field(default_factory=list)


class WorkerPool:
    """`size` persistent threads; with size 0, a thread is started for each unit.

    With a `share`, a thread is started for each unit too, and the share says how many run at the same time.

    A unit runs as soon as the units it waits for have ended; it does not wait for a whole level of the graph.
    `run` reports failures itself and must not raise.
    """

    def __init__(
        self,
        size: int,
        run: Callable[[Unit], None],
        clock: Callable[[], datetime],
        share: WorkerShare | None = None,
    ) -> None:
        self._run = run
        self._clock = clock
        self._share = share
        if share is not None:
            size, share.on_free = 0, self._start_more
        self._size = size
        self._lock = threading.Condition()
        self._ready = Queue[_Task]()
        self._tasks: dict[Unit, _Task] = {}
        self._is_closed = False
        self._busy = 0
        self._running: set[Unit] = set()
        self._threads: list[threading.Thread] = []
        for number in range(size):
            self._start(self._take_turns, f"worker {number + 1}")

    def submit(self, units: Iterable[tuple[Unit, Urgency]]) -> None:
        """Queue units, each given after those it waits for."""
        with self._lock:
            for unit, urgency in units:
                task = _Task(unit, urgency)
                for above in unit.after:
                    if above in self._tasks:
                        self._tasks[above].holds_up.append(task)
                        task.waits_for += 1
                self._tasks[unit] = task
                if not task.waits_for:
                    self._push(task)

    @property
    def limit(self) -> int:
        """The greatest number of units that run at the same time."""
        return self._share.limit if self._share is not None else self._size or MAX_STARTED

    def running(self) -> tuple[Unit, ...]:
        """The units that run now."""
        with self._lock:
            return tuple(self._running)

    def busy(self) -> int:
        """How many units run now."""
        with self._lock:
            return self._busy

    def queued(self) -> int:
        """How many units wait for a worker, or for another unit."""
        with self._lock:
            return len(self._tasks) - self._busy

    def close(self, timeout: float | None = None) -> bool:
        """Start nothing more and wait for running units; returns whether all ended in time."""
        with self._lock:
            self._is_closed = True
            self._ready.clear()
            self._lock.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)

    def _push(self, task: _Task) -> None:
        self._ready.put(task, task.urgency)
        if self._size:
            self._lock.notify()
        else:
            self._start_ready()

    def _start_more(self) -> None:
        with self._lock:
            self._start_ready()

    def _start_ready(self) -> None:
        """Start a thread for each ready unit, as far as there are workers. The caller holds the lock."""
        while self._ready and not self._is_closed and self._may_start():
            self._start_one()

    def _may_start(self) -> bool:
        return self._share.take() if self._share is not None else self._busy < self.limit

    def _start_one(self) -> None:
        task = self._take_ready()
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._start(lambda: self._work_off(task), "worker")

    def _start(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take_turns(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: bool(self._ready) or self._is_closed)
                if self._is_closed:
                    return
                task = self._take_ready()
            self._work_off(task)

    def _take_ready(self) -> _Task:
        task = self._ready.take(self._clock())
        self._busy += 1
        self._running.add(task.unit)
        return task

    def _work_off(self, task: _Task) -> None:
        try:
            self._run(task.unit)
        finally:
            with self._lock:
                self._busy -= 1
                self._running.discard(task.unit)
                self._tasks.pop(task.unit, None)
                for held in task.holds_up:
                    held.waits_for -= 1
                    if not held.waits_for and not self._is_closed:
                        self._push(held)
            if self._share is not None:
                self._share.give_back()
            if not self._size:
                self._start_more()
