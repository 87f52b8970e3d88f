"""Answers requests that are no refreshes, in threads beside the workers: a comparison may take an hour."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, assert_never
from uuid import UUID

from pgtrickle.catalog.install import check_original
from pgtrickle.catalog.requests import UserRequest, answer_request, give_back_request, take_request
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.comparison import UncomparedTable, VerifiedTable
from pgtrickle.model.error_json import error_to_json
from pgtrickle.model.errors import ConnectionFailed, NoConnectionFree, PgTrickleError, RefreshFailed
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.compare import compare
from pgtrickle.scheduler.service.load_definitions import load_graph

MOST_AT_ONCE = 2
"""So that one long request does not hold up all others of its kind."""


@dataclass(slots=True)
class RequestThreads(ABC):
    """Starts a thread when a poll has found requests of its kind; the thread ends when none is left."""

    kind: ClassVar[str]

    engine: Engine
    sidecar: UUID
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: set[threading.Thread] = field(default_factory=set)
    _is_closed: bool = False

    def wake(self) -> None:
        """Answer what is waiting, unless as many threads as allowed already do."""
        with self._lock:
            self._threads = {thread for thread in self._threads if thread.is_alive()}
            if self._is_closed or len(self._threads) >= MOST_AT_ONCE:
                return
            thread = threading.Thread(target=self._serve, name=self.kind, daemon=True)
            self._threads.add(thread)
            thread.start()

    def close(self) -> None:
        """Answer no other request and wait for the running ones."""
        with self._lock:
            self._is_closed = True
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _serve(self) -> None:
        # what fails here is given back, and the next poll finds it again
        with suppress(DatabaseError, PgTrickleError):
            while not self._is_closed and (request := self.take()) is not None:
                try:
                    answer = self._answer(request)
                except (DatabaseError, PgTrickleError):
                    with self.engine.connection() as connection:
                        give_back_request(connection, request.id)
                        connection.commit()
                    raise
                with self.engine.connection() as connection:
                    answer_request(connection, request.id, answer)
                    connection.commit()

    def take(self) -> UserRequest | None:
        """The next request. No connection is held while it is answered: that needs several."""
        with self.engine.connection() as connection:
            request = take_request(connection, self.kind, self.sidecar)
            connection.commit()
            return request

    @abstractmethod
    def carry_out(self, request: UserRequest) -> Mapping[str, Any]:
        """Do what is asked for, and return the answer."""

    def _answer(self, request: UserRequest) -> Mapping[str, Any]:
        try:
            with self.engine.connection() as connection:
                check_original(connection)
            return self.carry_out(request)
        except (ConnectionFailed, NoConnectionFree):
            raise
        except PgTrickleError as error:
            return {"error": error_to_json(error)}
        except DatabaseError:
            raise
        except Exception as error:
            # no failure may end the thread without an answer
            message = f"the request to {self.kind} failed: {type(error).__name__}"
            return {"error": error_to_json(RefreshFailed(message))}


@dataclass(slots=True)
class Comparisons(RequestThreads):
    """Answers requests for comparisons of stream tables with their queries."""

    kind: ClassVar[str] = "verify"

    def carry_out(self, request: UserRequest) -> Mapping[str, Any]:
        """Compare a stream table."""
        with self.engine.connection() as connection:
            table, graph = stream_table(connection, request.table), load_graph(connection)
        found = compare(self.engine, table, graph, request.seconds)
        match found:
            case VerifiedTable():
                return {"rows": found.rows, "milliseconds": found.milliseconds}
            case UncomparedTable():
                return {"uncompared": found.reason}
            case _:
                assert_never(found)
