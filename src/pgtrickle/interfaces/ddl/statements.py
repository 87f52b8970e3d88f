"""What can be said of stream tables, as values."""

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
    only_if_new: bool = False
    replaces: bool = False


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
    only_if_there: bool = False
    cascades: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """REFRESH STREAM TABLE name."""

    name: str


Statement = Create | Alter | Drop | Refresh


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement, and where in the text it begins."""

    statement: Statement
    place: str
