"""Options and arguments that several commands have."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, TypeAlias

from typer import Argument, Option

from pgtrickle.interfaces.cli.secrecy import DSN_VARIABLE, LISTEN_DSN_VARIABLE
from pgtrickle.interfaces.environment import (
    MAX_CONNECTIONS_VARIABLE,
    MEMORY_LIMIT_VARIABLE,
    POOLER_VARIABLE,
)
from pgtrickle.postgres.pooling import Pooling

Dsn: TypeAlias = Annotated[
    str,
    Option(
        "--dsn",
        envvar=DSN_VARIABLE,
        show_default=False,
        show_envvar=False,
        help="Where PostgreSQL is: postgresql://user@host/database, or key=value pairs. "
        f"Without it {DSN_VARIABLE}, else libpq's PGHOST, PGUSER … and ~/.pgpass, which are also "
        "the better places for a password.",
    ),
]
Json: TypeAlias = Annotated[bool, Option("--json", help="Print JSON, for programs.")]
Name: TypeAlias = Annotated[
    str,
    Argument(
        show_default=False,
        help="The stream table, written as in SQL: sales, shop.sales, '\"Sales 2025\"'.",
    ),
]
Schedule: TypeAlias = Annotated[
    str | None,
    Option(
        "--schedule",
        "-s",
        show_default=False,
        help="An interval (500ms, 1s, 1h30m), cron in UTC ('*/5 8-17 * * mon-fri', @hourly), "
        "calculated (when a source has changed), or manual.",
    ),
]
Mode: TypeAlias = Annotated[
    str | None,
    Option(
        "--mode",
        "-m",
        show_default=False,
        help="AUTO, DIFFERENTIAL (refused if the query cannot be followed), or FULL.",
    ),
]
Query: TypeAlias = Annotated[
    str | None, Option("--query", "-q", show_default=False, help="The query it follows: one SELECT.")
]
QueryFile: TypeAlias = Annotated[
    str | None,
    Option("--query-file", "-f", show_default=False, help="A file with the query; - reads standard input."),
]


MaxErrors: TypeAlias = Annotated[
    int,
    Option(
        "--max-consecutive-errors",
        envvar="PGTRICKLE_MAX_CONSECUTIVE_ERRORS",
        show_envvar=False,
        min=1,
        max=1000,
        help="So many failures in a row suspend a stream table. Without it PGTRICKLE_MAX_CONSECUTIVE_ERRORS.",
    ),
]
Workers: TypeAlias = Annotated[
    int,
    Option(
        "--worker-pool-size",
        envvar="PGTRICKLE_WORKER_POOL_SIZE",
        show_envvar=False,
        min=0,
        max=64,
        help="How many threads refresh at the same time; 0 starts one for each task. "
        "Without it PGTRICKLE_WORKER_POOL_SIZE.",
    ),
]
ListenDsn: TypeAlias = Annotated[
    str | None,
    Option(
        "--listen-dsn",
        envvar=LISTEN_DSN_VARIABLE,
        show_default=False,
        show_envvar=False,
        help="Where wake-ups are heard, if --dsn leads to a pooler: an address of the server itself. "
        f"Without it {LISTEN_DSN_VARIABLE}; without either, changes are found by looking.",
    ),
]


PoolerCompatibility: TypeAlias = Annotated[
    bool | None,
    Option(
        "--pooler-compatibility/--no-pooler-compatibility",
        show_default=False,
        help="Refresh it without prepared statements, and tell no alerts of it.",
    ),
]


OnDivergence: TypeAlias = Annotated[
    str | None,
    Option(
        "--on-divergence",
        show_default=False,
        help="What to do if it does not hold the rows it should hold: repair (load it anew), or stop.",
    ),
]


PoolerOption: TypeAlias = Annotated[
    Pooling,
    Option(
        "--pooler",
        envvar=POOLER_VARIABLE,
        show_envvar=False,
        help="Whether the address is that of a pooler in transaction mode, such as PgBouncer; "
        f"auto finds out. Without it {POOLER_VARIABLE}.",
    ),
]
MaxConnections: TypeAlias = Annotated[
    int,
    Option(
        "--max-connections",
        envvar=MAX_CONNECTIONS_VARIABLE,
        show_envvar=False,
        help="How many connections the sidecar and its Spark tasks may have together. "
        f"Without it {MAX_CONNECTIONS_VARIABLE}.",
    ),
]

MemoryLimit: TypeAlias = Annotated[
    str | None,
    Option(
        "--memory-limit",
        envvar=MEMORY_LIMIT_VARIABLE,
        show_default=False,
        show_envvar=False,
        help="How much data the refreshes of this process may hold at once, such as 512MB. A change that "
        "reaches more is computed in Spark's tasks, in portions. Default: an eighth of the heap of "
        f"Spark's driver. Without it {MEMORY_LIMIT_VARIABLE}.",
    ),
]


class Spread(Enum):
    """How refreshes run on Spark."""

    AUTO = "auto"
    SMALL = "small"
    DISTRIBUTED = "distributed"


Master: TypeAlias = Annotated[
    str,
    Option(
        "--spark-master",
        envvar="PGTRICKLE_SPARK_MASTER",
        show_envvar=False,
        help="Where Spark runs: local[*], spark://…, k8s://…, sc://….",
    ),
]
PathOption: TypeAlias = Annotated[
    Spread,
    Option("--path", help="In one task, spread over tasks, or chosen by size."),
]
