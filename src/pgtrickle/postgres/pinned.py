"""A connection with our own transport settings, regardless of those of the role, database or pooler.

On a direct connection they are set once, for the session. A pooler in transaction mode can run each
transaction on another server session, so there each BEGIN sets them, and a statement outside a transaction
gets its own transaction.
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
"""The first statement: the search_path of the login may find functions and operators of other roles."""

_PIN: Final = """
select array_agg(s.name order by s.name), array_agg(pg_catalog.set_config(s.name, s.value, p.is_pooled)),
    bool_or(p.is_pooled), pg_catalog.current_setting('session_replication_role')
from (select coalesce(%s::boolean, pg_catalog.pg_backend_pid() <> %s)) as p(is_pooled),
    unnest(%s::text[], %s::text[]) as s(name, value)
where pg_catalog.current_setting(s.name, true) is not null
"""


class PinnedConnection(psycopg.Connection[TupleRow]):
    """A psycopg connection; `pin` gives it our settings."""

    is_pooled: bool = False
    """Whether there is a pooler between us and the server."""
    _begin: bytes | None = None

    replication_role: str = "origin"
    """The value of `session_replication_role`, which only a superuser can set."""

    def pin(self, *, is_pooled: bool | None = None) -> None:
        """Apply the transport settings, outside a transaction. Detect a pooler if `is_pooled` is None.

        At login, a server sends the id of its backend process for cancel requests. A pooler sends an id that
        is not the backend's, because the backend changes with each transaction.
        """
        parameters = (is_pooled, self.info.backend_pid, list(TRANSPORT), list(TRANSPORT.values()))
        autocommit, self.autocommit = self.autocommit, True
        with self.transaction():
            self.execute(_PATH)
            row = self.execute(_PIN, parameters).fetchone()
        self.autocommit = autocommit
        assert row is not None
        names, _, self.is_pooled, self.replication_role = row
        if self.is_pooled:
            self._begin = _begin_with(names, self)

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> psycopg.Cursor[TupleRow]:
        """Execute a statement, in its own transaction if the settings would not apply otherwise."""
        if self._begin and self.autocommit and self.info.transaction_status is TransactionStatus.IDLE:
            with self.transaction():
                return super().execute(query, params, **kwargs)
        return super().execute(query, params, **kwargs)

    def _exec_command(
        self, command: QueryNoTemplate, result_format: Format = Format.TEXT
    ) -> PQGen[PGresult | None]:
        # psycopg begins every transaction through this command
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
    """A BEGIN, with the settings of the transaction in the same message."""
    parts: list[sql.Composable] = [sql.SQL("begin isolation level read committed")]
    parts += [
        sql.SQL("set local {} = {}").format(sql.Identifier(name), sql.Literal(TRANSPORT[name]))
        for name in names
        if not name.startswith("default_transaction") and name != "search_path"
    ]
    # not as a literal, which would turn the list of schemas into one name
    parts.append(sql.SQL(_PATH))
    return sql.SQL("; ").join(parts).as_bytes(connection)
