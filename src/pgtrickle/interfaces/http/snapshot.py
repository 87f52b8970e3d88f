"""All stream tables as of one moment, and how they are doing, in numbers and in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pgtrickle.commands.overview import ServiceFacts
from pgtrickle.interfaces.http.table_row import STATES, TableRow, json_text, time_text

_RANK: Final = {state: rank for rank, state in enumerate(STATES)}
_IN_WORDS: Final = {
    "failing": ("is failing", "are failing"),
    "suspended": ("is suspended", "are suspended"),
    "late": ("is late", "are late"),
    "waiting": ("waits", "wait"),
    "initializing": ("is being loaded", "are being loaded"),
}


@dataclass(slots=True)
class Snapshot:
    """What an overview shows. Its JSON is made once for each version."""

    version: int
    at: datetime
    facts: ServiceFacts
    rows: Mapping[str, TableRow]
    _texts: dict[bool, bytes] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """How many stream tables are in each state."""
        found = Counter(row.state for row in self.rows.values())
        return {"total": len(self.rows), **{state: found[state] for state in reversed(STATES)}}

    def summary(self) -> dict[str, Any]:
        """The numbers and the sentence."""
        counts = self.counts()
        return {"counts": counts, "sentence": sentence(counts, self.facts)}

    def body(self, *, with_errors: bool) -> bytes:
        """The overview as JSON, those that need attention first."""
        found = self._texts.get(with_errors)
        if found is None:
            head = json_text(
                {
                    "at": time_text(self.at),
                    "database": self.facts.database,
                    "version": self.facts.version,
                    "is_served": self.facts.is_served,
                    "enabled": not self.facts.is_drained,
                    **self.summary(),
                }
            )
            rows = ",".join(row.text(with_errors=with_errors) for row in ordered(self.rows.values()))
            found = self._texts[with_errors] = f'{head[:-1]},"tables":[{rows}]}}'.encode()
        return found


def ordered(rows: Iterable[TableRow]) -> list[TableRow]:
    """Those that need attention first, then by name."""
    return sorted(rows, key=lambda row: (_RANK[row.state], row.name))


def sentence(counts: Mapping[str, int], facts: ServiceFacts) -> str:
    """How the stream tables are doing, for people."""
    total = counts["total"]
    if not facts.is_served and total:
        return "No sidecar serves this database, so nothing is refreshed."
    if facts.is_drained and total:
        return "The database is drained: no refresh starts until it is undrained."
    if total == 0:
        return "There are no stream tables yet."
    parts = [
        f"{counts[state]} {_IN_WORDS[state][counts[state] != 1]}" for state in _IN_WORDS if counts[state]
    ]
    if not parts:
        return "The stream table is fresh." if total == 1 else f"All {total:,} stream tables are fresh."
    text = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    noun = "stream table" if total == 1 else "stream tables"
    return f"Of {total:,} {noun}, {text}."
