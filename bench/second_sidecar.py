"""Another sidecar on a database that one serves already: it has nothing to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Figure, at_most
from bench.layers import chain, made, make_sources
from bench.stage import Stage
from pgtrickle.model.settings import CACHE_DIR

SOURCE, TABLE = "source", "kept_1"
SAME_HOST, OTHER_HOST = "on the same host", "on another host"
ROOT: Final = Path(__file__).parent.parent


def second_sidecar(stage: Stage) -> list[Figure]:
    """A process with a Spark of its own refreshes a stream table that this one has refreshed before."""
    with stage.database("second_sidecar") as place:
        make_sources(place.connection, [SOURCE])
        known = made(place, chain("kept", SOURCE, 1), SOURCE)
        # a window in which the source has changed, as the second one will meet it
        known.change()
        known.refresh()
        figures = []
        for where, environment in ((SAME_HOST, {}), (OTHER_HOST, {CACHE_DIR.variable: "off"})):
            known.change()
            told = _told(place.dsn, environment)
            note = f"its first refresh took {told.first:.4g} ms, the next {told.second:.4g} ms"
            what = f"second sidecar {where}, first refresh of a known table: compiles"
            samples = {"milliseconds": [told.first, told.second]}
            figures.append(Figure(what, told.compiles, "", at_most(0), note, samples))
        place.trickle.verify()
    return figures


@dataclass(frozen=True, slots=True)
class Told:
    """What the other process says of its first refresh, and how long the one after it took."""

    compiles: int
    first: float
    second: float


def _told(dsn: str, environment: dict[str, str]) -> Told:
    done = subprocess.run(
        [sys.executable, "-m", "bench.sidecar_process", TABLE, SOURCE],
        env={**os.environ, **environment, "PGTRICKLE_BENCH_DSN": dsn},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Told(**json.loads(done.stdout.splitlines()[-1]))
