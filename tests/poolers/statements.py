"""What a server was asked, read from its log, and what of it would outlive a transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from pgtrickle.embedded import Server

_LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] LOG:  (statement|execute ([^:]+)): (.*)$")
# a pooler makes these fit on a connection of the server, for the client that gets it
_OF_THE_POOLER = re.compile(
    r"^SET (client_encoding|datestyle|timezone|standard_conforming_strings|application_name)='", re.IGNORECASE
)
_LASTING = (
    ("prepares", r"\b(prepare|deallocate)\s+\w"),
    ("listens", r"^\s*(un)?listen\b"),
    ("locks for the session", r"\bpg_(try_)?advisory_lock"),
    ("sets for the session", r"\bset_config\s*\((?:[^()]|\([^()]*\))*,\s*false\s*\)"),
    ("sets for the session", r"^\s*(set|reset)\s+(?!local\b|transaction\b|constraints\b)"),
    ("holds a cursor", r"\bwith\s+hold\b"),
    ("loads a library", r"^\s*(load|discard)\b"),
)
_NEEDS_TRANSACTION = re.compile(r"^\s*(set\b|lock\s|create\s+temp|savepoint\b)", re.IGNORECASE)
_BEGINS = re.compile(r"^\s*(begin|start transaction)\b", re.IGNORECASE)
_ENDS = re.compile(r"^\s*(commit|rollback(?!\s+to)|abort|end)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as the process `pid` of the server ran it; `name` is that of what was prepared."""

    pid: int
    name: str | None
    text: str


@contextmanager
def logged(server: Server, admin: psycopg.Connection, database: str, role: str) -> Iterator[list[Statement]]:
    """What sessions of the role that begin in here ask of the database; filled in at the end."""
    admin.execute(f"alter role {role} in database {database} set log_statement = 'all'")
    start = server.log.stat().st_size
    found: list[Statement] = []
    try:
        yield found
    finally:
        admin.execute(f"alter role {role} in database {database} reset log_statement")
        with server.log.open("rb") as log:
            log.seek(start)
            found += parsed(log.read().decode(errors="replace").splitlines())


def parsed(lines: Iterable[str]) -> list[Statement]:
    """The statements of a log; a line that continues one begins with a tab."""
    found: list[Statement] = []
    is_ours = False
    for line in lines:
        matched = _LINE.match(line)
        if matched:
            pid, kind, name, text = matched.groups()
            found.append(Statement(int(pid), None if kind == "statement" else name, text))
        elif line.startswith("\t") and is_ours:
            last = found.pop()
            found.append(Statement(last.pid, last.name, f"{last.text}\n{line[1:]}"))
        is_ours = bool(matched) or (line.startswith("\t") and is_ours)
    return found


def lasting(statements: Iterable[Statement]) -> list[str]:
    """What would stay on the server's connection when its transaction is over, in sentences."""
    open_in: set[int] = set()
    found: list[str] = []
    for one in statements:
        if one.name not in (None, "<unnamed>"):
            found.append(f"prepares {one.name}: {one.text}")
        if _OF_THE_POOLER.match(one.text):
            continue
        found += [
            f"{what}: {one.text}" for what, sign in _LASTING if re.search(sign, one.text, re.IGNORECASE)
        ]
        if _NEEDS_TRANSACTION.match(one.text) and one.pid not in open_in:
            found.append(f"outside a transaction: {one.text}")
        if _BEGINS.match(one.text):
            open_in.add(one.pid)
        elif _ENDS.match(one.text):
            open_in.discard(one.pid)
    return found
