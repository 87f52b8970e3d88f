"""Recognizes the server timeouts that close a connection."""

from __future__ import annotations

from typing import Final

import psycopg

_BY_SQLSTATE: Final = {
    "25P03": "idle_in_transaction_session_timeout",
    "25P04": "transaction_timeout",
    "57P05": "idle_session_timeout",
}


def server_timeout_behind(error: BaseException | None) -> str | None:
    """The setting whose timeout closed the connection; None if no timeout did."""
    while error is not None:
        if isinstance(error, psycopg.Error) and error.sqlstate in _BY_SQLSTATE:
            return _BY_SQLSTATE[error.sqlstate]
        error = error.__cause__ or error.__context__
    return None
