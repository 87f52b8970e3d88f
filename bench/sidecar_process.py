"""`python -m bench.sidecar_process`: what `second_sidecar` starts; it refreshes twice, and tells as JSON."""

from __future__ import annotations

import json
import os
import sys

import psycopg

import pgtrickle
from bench.timing import milliseconds


def main(table: str, source: str) -> None:
    """Time the first refresh in this process, and one after another change."""
    dsn = os.environ["PGTRICKLE_BENCH_DSN"]
    with pgtrickle.connect(dsn) as trickle, psycopg.connect(dsn, autocommit=True) as application:
        # a sidecar has its Spark before it refreshes anything
        _ = trickle.engine.spark
        first = milliseconds(lambda: trickle.refresh(table))
        compiles = trickle.engine.cache_counters()["compiles"]
        application.execute(f"update {source} set cents = cents + 1 where id = 1")
        second = milliseconds(lambda: trickle.refresh(table))
    print(json.dumps({"compiles": compiles, "first": first, "second": second}))


if __name__ == "__main__":
    main(*sys.argv[1:])
