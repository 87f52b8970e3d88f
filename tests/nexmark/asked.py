"""The queries of Nexmark in PostgreSQL's SQL. q12 is missing: it counts by the time of processing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_TEXTS: Final = Path(__file__).parent / "queries"

NAMES: Final = tuple(sorted(path.stem for path in _TEXTS.glob("q*.sql")))


def query(name: str) -> str:
    return (_TEXTS / f"{name}.sql").read_text().strip()
