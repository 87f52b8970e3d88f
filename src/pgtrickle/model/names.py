"""Names of relations, quoted the way PostgreSQL quotes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")


def quoted(identifier: str) -> str:
    """The identifier in double quotes, with embedded quotes doubled."""
    return '"' + identifier.replace('"', '""') + '"'


def quoted_plainly(identifier: str) -> str:
    """The identifier in double quotes only where it needs them."""
    return identifier if _PLAIN.match(identifier) else quoted(identifier)


@dataclass(frozen=True, slots=True, order=True)
class RelationName:
    """The schema and name of a relation, as in the catalog of PostgreSQL."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """The name as SQL, with both parts quoted."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def __str__(self) -> str:
        return f"{quoted_plainly(self.schema)}.{quoted_plainly(self.name)}"
