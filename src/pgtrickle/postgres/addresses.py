"""Addresses of databases, as libpq understands them."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo


def address_parts(dsn: str) -> dict[str, Any]:
    """The parts of an address: host, port, dbname and others; raises ValueError if it cannot be parsed.

    The error does not quote the address, which may contain a password.
    """
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.ProgrammingError:
        raise ValueError("an address that libpq can parse") from None


def with_parts(dsn: str, **parts: str | int) -> str:
    """An address with some parts replaced or added."""
    return make_conninfo(dsn, **parts)
