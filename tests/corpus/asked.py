"""The queries of the corpus, and the changes that they are followed through."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.plan.analyst import named_queries

_FOLDER: Final = Path(__file__).parent

QUERIES: Final = named_queries(_FOLDER / "queries")
"""The queries by file and title."""

TABLES: Final = (_FOLDER / "tables.sql").read_text()
ROWS: Final = (_FOLDER / "rows.sql").read_text()
WINDOWS: Final = tuple((_FOLDER / "changes.sql").read_text().split("----\n"))
SUMMARY: Final = _FOLDER / "summary.txt"

FILES: Final = tuple(dict.fromkeys(name.partition(":")[0] for name in QUERIES))


def queries_of(file: str) -> dict[str, str]:
    """The queries of one file by title."""
    return {name: query for name, query in QUERIES.items() if name.startswith(f"{file}:")}
