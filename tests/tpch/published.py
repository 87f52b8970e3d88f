"""The 22 queries of TPC-H with the parameters of its validation run, and what makes an answer right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TEXTS: Final = Path(__file__).parent / "queries"
_LIMIT: Final = re.compile(r"\nlimit \d+\s*\Z")
# the one parameter that depends on how much data there is
_FRACTION: Final = {"q11": 0.0001}

NAMES: Final = tuple(f"q{number:02}" for number in range(1, 23))

PARTIAL_ORDER: Final = {
    "q03": ("revenue", "o_orderdate"),
    "q10": ("revenue",),
    "q18": ("o_totalprice", "o_orderdate"),
}
"""Queries with a LIMIT whose order leaves ties, by what they sort by: any of the tied rows may be kept.

q02 and q21 have a LIMIT too, but sort by all that tells their rows apart.
"""


@dataclass(frozen=True, slots=True)
class Query:
    """One of the queries, written for data of one scale."""

    name: str
    text: str

    @property
    def without_limit(self) -> str:
        """The query before its cut: every row that an answer may hold."""
        return _LIMIT.sub("\n", self.text)

    @property
    def tied_by(self) -> tuple[str, ...]:
        """What it sorts by, where that leaves open which rows are kept; otherwise nothing."""
        return PARTIAL_ORDER.get(self.name, ())


def query(name: str, scale: float) -> Query:
    """The query of that name; `scale` is that of the data."""
    text = (_TEXTS / f"{name}.sql").read_text().strip()
    fraction = _FRACTION.get(name)
    if fraction is not None:
        assert text.count(f"* {fraction}\n") == 1
        text = text.replace(f"* {fraction}\n", f"* {fraction / scale:.10f}\n")
    return Query(name, text)
