"""How many tasks may read each input of a program, and how many may write, within so many connections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pgtrickle.plan.program import Program


@dataclass(frozen=True, slots=True)
class Spread:
    """`readers` of each read, at most; what is not named is read by the driver. `writers` at most."""

    readers: Mapping[str, int]
    writers: int


def spread(places: int, pieces: Mapping[str, int], scans: Mapping[str, int]) -> Spread:
    """Divide the connections among the reads, which come in so many pieces and are scanned so often.

    Whatever plan Spark chooses, a piece is read by one task at a time for each scan of it. So the tasks
    never have more connections than the readers of all scans and the writers together.
    """
    writers = max(1, places * 2 // 5)
    left = places - writers
    readers: dict[str, int] = {}
    for name in sorted(pieces, key=lambda name: -pieces[name]):
        if scans[name] <= left:
            readers[name] = 1
            left -= scans[name]
    growing = list(readers)
    while growing:
        growing = [name for name in growing if readers[name] < pieces[name] and scans[name] <= left]
        for name in growing:
            if scans[name] <= left:
                readers[name] += 1
                left -= scans[name]
    return Spread(readers, writers)


def scans_of(program: Program) -> dict[str, int]:
    """How often the program's text scans each read: an input that it names twice is read twice."""
    found: dict[str, int] = {}
    for one in program.inputs:
        named = len(re.findall(rf"\b{re.escape(one.name)}\b", program.spark_sql))
        for name, _ in one.reads:
            found[name] = found.get(name, 0) + max(1, named)
    return found
