"""The statements about stream tables, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | bool | None


@dataclass(frozen=True, slots=True)
class Create:
    """CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] name [WITH (…)] AS query."""

    name: str
    query: str
    options: Mapping[str, Value] = field(default_factory=dict)
    if_not_exists: bool = False
    or_replace: bool = False
    query_start: int = field(default=0, compare=False)
    """Where the query begins in the text."""


@dataclass(frozen=True, slots=True)
class Alter:
    """ALTER STREAM TABLE name [SET (…)] [AS query]."""

    name: str
    options: Mapping[str, Value] = field(default_factory=dict)
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP STREAM TABLE [IF EXISTS] name [CASCADE]."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """REFRESH STREAM TABLE name."""

    name: str


Statement = Create | Alter | Drop | Refresh


@dataclass(frozen=True, slots=True)
class PlacedStatement:
    """A statement and the place in the text where it begins."""

    statement: Statement
    place: str
    start: int = field(default=0, compare=False)
