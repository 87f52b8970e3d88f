"""`python -m bench.attached [joins]`: stream tables that read other databases, with and without the broker.

How many windows ten databases read from one, and a join over two databases beside the same join in one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from bench.databases import SERVER, say, serving
from bench.machine import load
from pgtrickle.catalog.install import install
from pgtrickle.catalog.tables import find
from pgtrickle.commands.attached import attach, declare
from pgtrickle.commands.define import create
from pgtrickle.commands.run_databases import Fleet
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.model.databases import Databases, ServedDatabase
from pgtrickle.model.stream_table import RefreshOutcome
from pgtrickle.pipeline.session import open_spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.waiting import eventually

READERS, SOURCES, TABLES = 10, 5, 10
ROUNDS, CHANGED = 20, 200
ROWS, CHANGES, JOIN_ROUNDS = 1_000_000, 500, 9
JOIN = "select b.grp, count(*) as n, sum(a.v) as total from {a} a join {b} b on b.k = a.k group by b.grp"


def main() -> None:
    """Run all and print."""
    say(f"load {load()}")
    with tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as directory:
        Path(directory).chmod(0o755)
        with Server(Path(directory) / "server", bundled_binaries(), SERVER) as server:
            if "joins" not in sys.argv:
                windows(server)
            joins(server)


def database(server: Server, name: str) -> psycopg.Connection:
    """A new database with pgtrickle."""
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"create database {name}")
    connection = psycopg.connect(server.dsn(name), autocommit=True)
    with psycopg.connect(server.dsn(name)) as installing:
        install(installing)
    return connection


def windows(server: Server) -> None:
    """Windows and bytes that ten databases read from one, with and without the broker."""
    names = [f"reader_{number}" for number in range(READERS)]
    with ExitStack() as stack:
        origin = stack.enter_context(database(server, "origin"))
        for number in range(SOURCES):
            origin.execute(f"create table t{number} (id int primary key, v int, w text)")
            origin.execute(f"insert into t{number} select g, g, 'w' || g from generate_series(1, 5000) g")
        readers = [stack.enter_context(database(server, name)) for name in names]
        served = Databases(tuple(ServedDatabase(name, server.dsn(name)) for name in ("origin", *names)))
        with serving(served, idle_after=0.0):
            for name in names:
                attach(server.dsn(name), "o", "origin")
                for number in range(SOURCES):
                    declare(server.dsn(name), "o", "public", f"t{number}")
                for number in range(TABLES):
                    query = f"select id, v, w from o.public.t{number % SOURCES} where id < 10"
                    create(server.dsn(name), f"s{number}", query, {"refresh_mode": "FULL"})
            eventually(lambda: all(has_followed(reader, None) for reader in readers), seconds=300)
        found = {}
        for is_brokered in (False, True):
            with serving(served, idle_after=0.0, enable_refresh_broker=is_brokered) as fleet:
                eventually(lambda: all(m.loop.state.value == "serving" for m in fleet.members()), seconds=60)
                before, at = measured(fleet), time.monotonic()
                for number in range(ROUNDS):
                    moment = write(origin, number)
                    for reader in readers:
                        eventually(partial(has_followed, reader, moment), seconds=60)
                after = measured(fleet)
                found[is_brokered] = [b - a for a, b in zip(before, after, strict=True)]
                say(
                    f"{'with' if is_brokered else 'without'} the broker: {found[is_brokered][0]} windows in"
                    f" {ROUNDS} rounds, {found[is_brokered][1] / (ROUNDS * SOURCES * CHANGED):.0f} bytes per"
                    f" changed row, {(time.monotonic() - at) / ROUNDS * 1000:.0f} ms a round"
                )
        ratios = [b / max(1, a) for a, b in zip(found[False], found[True], strict=True)]
        say(f"windows with ÷ without {ratios[0]:.3f}; bytes with ÷ without {ratios[1]:.3f}")


def measured(fleet: Fleet) -> tuple[int, int]:
    """Windows and bytes that were read so far, by readers and by the broker."""
    counters = [member.engine.attached.counters for member in fleet.members()]
    if fleet.broker is not None:
        counters.append(fleet.broker.counters)
    return sum(c.direct + c.read for c in counters), sum(c.bytes_read for c in counters)


def write(origin: psycopg.Connection, number: int) -> object:
    """Change rows of every source in one transaction; returns when."""
    with origin.transaction():
        for source in range(SOURCES):
            origin.execute(f"update t{source} set v = v + 1 where id <= {CHANGED}")
    return origin.execute("select clock_timestamp()").fetchone()[0]  # type: ignore[index]


def has_followed(reader: psycopg.Connection, moment: object) -> bool:
    row = reader.execute(
        "select count(*) filter (where frontier is not null"
        " and (%(m)s::timestamptz is null or followed_at > %(m)s)), count(*)"
        " from pgtrickle.pgt_attached_tables",
        {"m": moment},
    ).fetchone()
    return row is not None and row[0] == row[1] == SOURCES


def joins(server: Server) -> None:
    """A join of two tables, in one database and over two, in turns."""
    with ExitStack() as stack:
        one = stack.enter_context(database(server, "one"))
        here = stack.enter_context(database(server, "here"))
        there = stack.enter_context(database(server, "there"))
        for connection, table in ((one, "a"), (one, "b"), (here, "a"), (there, "b")):
            column = "v int" if table == "a" else "grp int"
            connection.execute(f"create table {table} (k int primary key, {column})")
            connection.execute(
                f"insert into {table} select g, g % 1000 from generate_series(1, {ROWS}) g; analyze {table}"
            )
        spark = stack.enter_context(open_spark())
        spark.warm()
        engines = {name: Engine(server.dsn(name), lambda: spark) for name in ("one", "here")}
        engines["here"].attached.resolve = {"there": server.dsn("there")}.get
        here.execute("select pgtrickle.attach_database('x', 'there')")
        here.execute("select pgtrickle.declare_source('x', 'public', 'b')")
        follow(engines["here"])
        queries = {"one": JOIN.format(a="a", b="b"), "here": JOIN.format(a="a", b="x.public.b")}
        for name, connection in (("one", one), ("here", here)):
            connection.execute("select pgtrickle.create_stream_table('j', %s)", (queries[name],))
            at = time.monotonic()
            refresh_j(engines[name])
            say(f"{name}: loaded in {time.monotonic() - at:.1f} s")
        samples: dict[str, list[float]] = {"one": [], "here": []}
        for number in range(JOIN_ROUNDS):
            low = 1 + number * CHANGES
            for a, b, name in ((one, one, "one"), (here, there, "here")):
                a.execute(f"update a set v = v + 1 where k between {low} and {low + CHANGES - 1}")
                b.execute(
                    f"update b set grp = (grp + 1) % 1000 where k between {low} and {low + CHANGES - 1}"
                )
                at = time.perf_counter()
                outcome = refresh_j(engines[name])
                if number > 1:
                    samples[name].append(1000 * (time.perf_counter() - at))
                assert outcome.action.value == "DIFFERENTIAL", outcome
        same = {
            name: connection.execute("select * from j order by grp").fetchall()
            for name, connection in (("one", one), ("here", here))
        }
        assert same["one"] == same["here"]
        ms = {name: median(found) for name, found in samples.items()}
        size = here.execute(
            "select sum(pg_total_relation_size(c.oid)) from pg_class c"
            " where relname like 'copy_of_%' and relkind = 'r'"
        ).fetchone()
        say(
            f"join with {2 * CHANGES} changes: one database {ms['one']:.0f} ms, two {ms['here']:.0f} ms,"
            f" ratio {ms['here'] / ms['one']:.2f}; the copy has {float((size or [0])[0]) / 1e6:.0f} MB"
        )
        for engine in engines.values():
            engine._spark = None
            engine.close()


def follow(engine: Engine) -> None:
    for attached in engine.attached.list():
        engine.attached.follow(attached)


def refresh_j(engine: Engine) -> RefreshOutcome:
    with engine.connection() as connection:
        table = find(connection, "public.j")
    return refresh(engine, table.id, initiated_by="manual", waits=True)


if __name__ == "__main__":
    main()
