"""What capture costs an application that inserts one row at a time."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bench.figures import Figure, at_least, ratio
from bench.shop import CUSTOMERS, make_customers, make_orders, query
from bench.stage import Stage
from pgtrickle.embedded import bundled_binaries

CLIENTS = 4
_SCRIPT = """\\set customer random(1, {customers})
\\set cents random(1, 100000)
insert into {orders} (customer, amount) values (:customer, :cents / 100.0);
"""


def single_inserts(stage: Stage) -> list[Figure]:
    """Runs of pgbench on a captured table and on its twin, one after the other, in turns."""
    samples: dict[str, list[float]] = {"captured": [], "plain": []}
    with stage.database("single_inserts") as place:
        make_customers(place.connection)
        for name in samples:
            make_orders(place.connection, name, stage.sizes.few_orders)
        place.trickle.create_stream_table("by_region", query("captured"), None)
        place.settle()
        for number in range(1 + stage.sizes.long_rounds):
            for name in samples if number % 2 else reversed(samples):
                rate = _inserts_per_second(place.dsn, name, stage.sizes.seconds)
                if number:
                    samples[name].append(rate)
    what = f"single-row inserts per second, {CLIENTS} clients, with capture ÷ without"
    return [ratio(what, "captured", "plain", samples, at_least(0.85), unit="/s")]


def _inserts_per_second(dsn: str, orders: str, seconds: int) -> float:
    address = urlsplit(dsn)
    environment = {**os.environ, "PGPASSWORD": unquote(address.password or "")}
    where = ["-h", str(address.hostname), "-p", str(address.port), "-U", str(address.username)]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(_SCRIPT.format(customers=CUSTOMERS, orders=orders))
        script.flush()
        how = ["-n", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds), "-f", script.name]
        done = subprocess.run(
            [_pgbench(), *where, *how, address.path.removeprefix("/")],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    assert found is not None, done.stdout
    return float(found[1])


def _pgbench() -> Path:
    return bundled_binaries() / "pgbench"
