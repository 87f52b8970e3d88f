"""Addresses of databases, as libpq understands them."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from pgtrickle.model.errors import BadSetting

_PLACE: Final = ("host", "port", "dbname", "user")
"""The parts that say which database an address means, and as whom."""


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


def without_secrets(dsn: str) -> str:
    """The address without its passwords; host, port, database and user are named, wherever they came from.

    Another machine has neither the environment of this process nor, perhaps, its user.
    """
    options = Conninfo.get_defaults()
    secret = _secret_parts()
    parts = {name: value for name, value in address_parts(dsn).items() if name not in secret}
    if "service" not in parts:
        defaults = {option.keyword.decode(): option.val for option in options if option.val is not None}
        parts |= {name: defaults[name].decode() for name in _PLACE if name in defaults and name not in parts}
    return make_conninfo("", **parts)


def task_address(dsn: str, given: str | None) -> str:
    """The address that Spark's tasks use: some parts replaced, and then no password of this process.

    Raises if a given part is a secret. The error does not quote what was given.
    """
    if not given:
        return dsn
    try:
        parts = address_parts(given)
    except ValueError as wrong:
        raise BadSetting("task_dsn cannot be parsed", hint=f"it must be {wrong}") from None
    if parts.keys() & _secret_parts():
        raise BadSetting(
            "task_dsn contains a password, which every task would carry",
            hint="put the password into a file on the executors, and name it: passfile=/etc/pgtrickle/pgpass",
        )
    return make_conninfo(without_secrets(dsn), **parts)


def _secret_parts() -> set[str]:
    """What libpq itself hides: passwords and keys."""
    return {option.keyword.decode() for option in Conninfo.get_defaults() if option.dispchar == b"*"}
