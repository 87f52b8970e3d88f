"""`python -m bench.databases`: one sidecar for many databases.

What idle databases cost, what a hanging one does to the others, and how soon a new one is served. It has a
server of its own with room for the connections, and no Spark: all stream tables have mode FULL.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from bench.idling import no_spark
from bench.machine import load
from bench.timing import percentile
from pgtrickle.catalog.install import install
from pgtrickle.commands.run_databases import Fleet, build_fleet, run_databases
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.model.databases import Databases, DiscoveredServer, ServedDatabase
from pgtrickle.model.settings import Settings
from pgtrickle.pipeline.supply import SparkSupply
from tests.fixtures.waiting import eventually

IDLE_DATABASES = 100
TABLES = 10
IDLE_SECONDS = 30.0
BUSY_DATABASES = 5
ROUNDS = 60
ADDRESSES = "BENCH_ADDRESSES"
SERVER = {"max_connections": "400", "shared_buffers": "512MB", "fsync": "off", "autovacuum": "off"}


def main(databases: int = IDLE_DATABASES) -> None:
    """Run all and print."""
    say(f"load {load()}")
    with tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as directory:
        Path(directory).chmod(0o755)
        with Server(Path(directory) / "server", bundled_binaries(), SERVER) as server:
            names = [f"shop_{number}" for number in range(databases)]
            began = time.monotonic()
            for name in names:
                create(server, name, TABLES)
            say(f"{databases} databases with {TABLES} stream tables each: {time.monotonic() - began:.0f} s")
            idle(server, names)
            hanging(server, names[:BUSY_DATABASES])
            killed(server, names[:BUSY_DATABASES])
            discovered(server, names)


def create(server: Server, name: str, tables: int) -> None:
    """A database with a source and stream tables over it."""
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"create database {name}")
    with psycopg.connect(server.dsn(name)) as connection:
        install(connection)
    with psycopg.connect(server.dsn(name), autocommit=True) as app:
        app.execute("create table orders (id bigint generated always as identity primary key, amount int)")
        for number in range(tables):
            app.execute(
                "select pgtrickle.create_stream_table(%s, %s, '100ms', 'FULL')",
                (f"total_{number}", f"select coalesce(sum(amount), 0) + {number} as total from orders"),
            )


@contextmanager
def serving(databases: Databases, **options: float) -> Iterator[Fleet]:
    """A fleet that serves these databases."""
    supply, stop = SparkSupply(no_spark), threading.Event()
    supply.begin = lambda: None  # type: ignore[method-assign]
    settings = Settings(**{"worker_pool_size": 4, "stop_timeout": 30.0, **options})  # type: ignore[arg-type]
    fleet = build_fleet(settings, supply, lambda event: None)
    thread = threading.Thread(
        target=run_databases, args=(fleet, databases, supply, stop, lambda event: None, settings)
    )
    thread.start()
    try:
        yield fleet
    finally:
        stop.set()
        thread.join(120)
        fleet.release()


def idle(server: Server, names: list[str]) -> None:
    """The CPU of the sidecar, and what the server has to do, while nothing happens."""
    served = tuple(ServedDatabase(name, server.dsn(name)) for name in names)
    with (
        serving(Databases(served), idle_after=5.0) as fleet,
        closing(psycopg.connect(server.dsn(), autocommit=True)) as admin,
    ):
        began = time.monotonic()
        eventually(
            lambda: (
                all(member.loop.state.value == "resting" for member in fleet.members())
                and len(fleet.members()) == len(names)
            ),
            seconds=600,
        )
        say(f"all loaded and at rest after {time.monotonic() - began:.0f} s")
        cpu, commits, at = time.process_time(), transactions(admin), time.monotonic()
        pause(IDLE_SECONDS)
        seconds = time.monotonic() - at
        connections = admin.execute(
            "select count(*) from pg_stat_activity where application_name like 'pgtrickle%'"
        ).fetchall()[0][0]
        say(
            f"idle: {(time.process_time() - cpu) / seconds:.3f} of a core,"
            f" {(transactions(admin) - commits) / seconds:.0f} transactions a second on the server,"
            f" {connections} connections, {threading.active_count()} threads, {resident() / 1e6:.0f} MB"
        )


def hanging(server: Server, names: list[str]) -> None:
    """Freshness of some databases, alone and beside one whose refreshes hang, in turns."""
    served = tuple(ServedDatabase(name, server.dsn(name)) for name in names)
    hung, others = names[0], names[1:]
    with serving(Databases(served), idle_after=0.0) as fleet, psycopg.connect(server.dsn(hung)) as holder:
        eventually(lambda: all(member.loop.state.value == "serving" for member in fleet.members()))
        connections = {name: psycopg.connect(server.dsn(name), autocommit=True) for name in names}
        samples: dict[bool, list[float]] = {False: [], True: []}
        for number in range(ROUNDS):
            is_hung = number % 2 == 1
            if is_hung:
                holder.execute(
                    "lock table total_0, total_1, total_2, total_3, total_4 in access exclusive mode"
                )
                connections[hung].execute("insert into orders(amount) values (1)")
            for name in others:
                samples[is_hung].append(freshness(connections[name]))
            holder.rollback()
        for connection in connections.values():
            connection.close()
    alone, beside = (percentile(samples[is_hung], 95) for is_hung in (False, True))
    say(
        f"hanging database: p95 of the others {beside * 1000:.0f} ms beside, {alone * 1000:.0f} ms without:"
        f" {beside / alone:.2f}"
    )


def killed(server: Server, names: list[str]) -> None:
    """Freshness of databases that two processes serve, before and after one of them is killed."""
    environment = os.environ | {ADDRESSES: "\n".join(server.dsn(name) for name in names)}
    command = [sys.executable, "-m", "bench.databases", "serve"]
    processes = [subprocess.Popen(command, env=environment) for _ in range(2)]
    connections = [psycopg.connect(server.dsn(name), autocommit=True) for name in names]
    try:
        sidecars = "select count(*) from pgtrickle.server_worker_inventory where is_alive and is_here"
        for connection in connections:
            eventually(lambda c=connection: c.execute(sidecars).fetchall() == [(2,)])  # type: ignore[misc]
        before = [freshness(connection) for _ in range(ROUNDS // 2) for connection in connections]
        processes[0].kill()
        after = [freshness(connection) for _ in range(ROUNDS // 2) for connection in connections]
    finally:
        for connection in connections:
            connection.close()
        for process in processes:
            process.kill()
            process.wait()
    say(
        f"one of two sidecars killed: freshness p95 {percentile(before, 95) * 1000:.0f} ms before, after it"
        f" {percentile(after, 95) * 1000:.0f} ms, longest {max(after) * 1000:.0f} ms"
    )


def serve() -> None:
    """Serve the databases of the environment until killed."""
    addresses = os.environ[ADDRESSES].split("\n")
    served = tuple(ServedDatabase(str(number), dsn) for number, dsn in enumerate(addresses))
    with serving(Databases(served), idle_after=0.0):
        threading.Event().wait(600)


def freshness(connection: psycopg.Connection[tuple[int, ...]]) -> float:
    """How long a change takes until it is shown."""
    began = time.monotonic()
    connection.execute("insert into orders(amount) values (1)")
    (wanted,) = connection.execute("select sum(amount) from orders").fetchall()[0]
    eventually(lambda: connection.execute("select total from total_0").fetchall() == [(wanted,)])
    return time.monotonic() - began


def discovered(server: Server, names: list[str]) -> None:
    """From the end of the first transaction of a new database to its first refresh."""
    entry = DiscoveredServer(server.dsn(), frozenset(names))
    took = []
    with serving(Databases(servers=(entry,)), idle_after=0.0):
        for number in range(5):
            name = f"later_{number}"
            create(server, name, 1)
            began = time.monotonic()
            with psycopg.connect(server.dsn(name), autocommit=True) as app:
                eventually(lambda app=app: app.execute("select total from total_0").fetchall() != [])  # type: ignore[misc]
            took.append(time.monotonic() - began)
    say(f"discovered: first refresh after {percentile(took, 50):.1f} s, longest {max(took):.1f} s")


def transactions(admin: psycopg.Connection[tuple[int, ...]]) -> int:
    """The transactions of all databases so far."""
    admin.execute("select pg_stat_clear_snapshot()")
    return int(admin.execute("select sum(xact_commit) from pg_stat_database").fetchall()[0][0])


def resident() -> int:
    """The memory that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def pause(seconds: float) -> None:
    """Let time pass: what is measured is that nothing happens."""
    threading.Event().wait(seconds)


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
        sys.exit()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else IDLE_DATABASES)
