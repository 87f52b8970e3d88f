"""`python -m bench.attached_log`: how fast a database is followed by its log; nothing is installed there."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import psycopg

from bench.attached import database
from bench.databases import SERVER, say
from bench.machine import load
from pgtrickle.capture.attached.databases import AttachedDatabases
from pgtrickle.capture.attached.log.server import PUBLICATION
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.postgres.pool import Pool

ROWS = 1_000_000
COMMITS = 20_000
SMALL = """
do $$ begin
    for n in 1..{commits} loop
        update items set v = v + 1 where id = n;
        commit;
    end loop;
end $$
"""


def main() -> None:
    """Run all and print."""
    say(f"load {load()}")
    settings = {**SERVER, "wal_level": "logical"}
    with tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as directory:
        Path(directory).chmod(0o755)
        with Server(Path(directory) / "server", bundled_binaries(), settings) as server:
            measure(server)


def measure(server: Server) -> None:
    """Follow one large transaction, and many small ones."""
    here = database(server, "here")
    with psycopg.connect(server.dsn(), autocommit=True) as there:
        there.execute("create table items (id int primary key, v int, t text)")
        there.execute(f"create publication {PUBLICATION} for table items with (publish_via_partition_root)")
        attached = AttachedDatabases(Pool(server.dsn("here")), {"source": server.dsn()}.get)
        here.execute("select pgtrickle.attach_database('crm', 'source', cdc_mode => 'wal')")
        here.execute("select pgtrickle.declare_source('crm', 'public', 'items')")
        follow(attached)
        here.execute(
            "select pgtrickle.create_stream_table('copied', 'select v, t, id from crm.public.items',"
            " refresh_mode => 'FULL')"
        )
        follow(attached)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        there.execute(f"insert into items select g, g, md5(g::text) from generate_series(1, {ROWS}) g")
        seconds = follow(attached)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        say(f"one transaction of {ROWS:,} rows: {ROWS / seconds:,.0f} rows/s, memory grew by {grown} MB")
        there.execute(SMALL.format(commits=COMMITS))
        say(f"{COMMITS:,} transactions of one update: {COMMITS / follow(attached):,.0f} rows/s")
        say(f"comparing {ROWS:,} rows: {follow(attached, compares=True):.1f} s")
        attached.close()
    here.close()


def follow(attached: AttachedDatabases, *, compares: bool = False) -> float:
    """Follow up to now; returns how many seconds that took."""
    (one,) = attached.list()
    began = time.perf_counter()
    attached.follow(one, compares=compares, is_newest=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
