"""A connection whose settings of transport are ours, whatever the role, the database or the pooler has.

Straight to the server they are set once, for the session. A pooler in transaction mode gives each
transaction to any of its server's sessions, so there they are set as part of each BEGIN, and a statement
outside a transaction gets one of its own.
"""

from __future__ import annotations

from typing import Any, Final, cast

import psycopg
from psycopg import generators, sql
from psycopg.abc import PQGen, QueryNoTemplate
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

from pgtrickle.postgres.settings import SAFE_PATH, TRANSPORT

_PATH: Final = f"set local search_path = {SAFE_PATH}"
"""The first statement: along the path of a login, functions and operators of others may come first."""

_PIN: Final = """
select array_agg(s.name order by s.name), array_agg(pg_catalog.set_config(s.name, s.value, p.is_pooled)),
    bool_or(p.is_pooled), pg_catalog.current_setting('session_replication_role')
from (select coalesce(%s::boolean, pg_catalog.pg_backend_pid() <> %s)) as p(is_pooled),
    unnest(%s::text[], %s::text[]) as s(name, value)
where pg_catalog.current_setting(s.name, true) is not null
"""


class PinnedConnection(psycopg.Connection[TupleRow]):
    """A connection as psycopg has it; `pin` makes its settings ours."""

    is_pooled: bool = False
    """Whether a pooler stands between us and the server."""
    _begin: bytes | None = None

    replication_role: str = "origin"
    """What `session_replication_role` is; only a superuser may set it."""

    def pin(self, *, is_pooled: bool | None = None) -> None:
        """Set what values travel under; outside a transaction. Finds out about poolers unless it is told.

        At login a server names the process that serves us, so that we can cancel. A pooler names none of
        the server's: which one serves us changes with each transaction.
        """
        known = (is_pooled, self.info.backend_pid, list(TRANSPORT), list(TRANSPORT.values()))
        was, self.autocommit = self.autocommit, True
        with self.transaction():
            self.execute(_PATH)
            row = self.execute(_PIN, known).fetchone()
        self.autocommit = was
        assert row is not None
        names, _, self.is_pooled, self.replication_role = row
        if self.is_pooled:
            self._begin = _begin_with(names, self)

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> psycopg.Cursor[TupleRow]:
        """Execute a statement, in a transaction of its own where the settings would not hold otherwise."""
        if self._begin and self.autocommit and self.info.transaction_status is TransactionStatus.IDLE:
            with self.transaction():
                return super().execute(query, params, **kwargs)
        return super().execute(query, params, **kwargs)

    def _exec_command(
        self, command: QueryNoTemplate, result_format: Format = Format.TEXT
    ) -> PQGen[PGresult | None]:
        # psycopg begins every transaction by this command, whoever asks for one
        if self._begin is None or command != self._get_tx_start_command():
            return (yield from super()._exec_command(command, result_format))
        self._check_connection_ok()
        self.pgconn.send_query(self._begin)
        results = yield from generators.execute(self.pgconn)
        for result in results:
            if result.status != ExecStatus.COMMAND_OK:
                raise psycopg.errors.error_from_result(cast(Any, result))
        return cast(PGresult, results[-1])


def _begin_with(names: list[str], connection: psycopg.Connection[Any]) -> bytes:
    """A transaction, and in the same message everything that holds in it."""
    parts: list[sql.Composable] = [sql.SQL("begin isolation level read committed")]
    parts += [
        sql.SQL("set local {} = {}").format(sql.Identifier(name), sql.Literal(TRANSPORT[name]))
        for name in names
        if not name.startswith("default_transaction") and name != "search_path"
    ]
    # a list of names, which a literal would make one name of
    parts.append(sql.SQL(_PATH))
    return sql.SQL("; ").join(parts).as_bytes(connection)
