"""`python -m tests.fuzz`: look for queries that are followed wrongly, for as long as it is given."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from functools import partial
from typing import Annotated

import typer

from tests.fixtures.servers import EMBEDDED
from tests.fuzz.ddl.running import own_server
from tests.fuzz.ddl.running import run as run_ddl
from tests.fuzz.examining import examine, own_analyst
from tests.fuzz.ground import own_ground
from tests.fuzz.playing import play
from tests.fuzz.running import Player, run


def fuzz(
    seconds: Annotated[float, typer.Option(help="How long to look.")] = 60,
    seed: Annotated[int | None, typer.Option(help="The first seed; by the clock if none is given.")] = None,
    failures: Annotated[int, typer.Option(help="Stop after so many failures.")] = 1,
    shrink: Annotated[float, typer.Option(help="Seconds to spend on making one failure small.")] = 120,
    pg: Annotated[int, typer.Option(help="Major version of PostgreSQL.")] = EMBEDDED,
    examines: Annotated[
        bool, typer.Option("--examine", help="Compare queries with their operators only, without Spark.")
    ] = False,
    ddl: Annotated[
        bool, typer.Option("--ddl", help="Play random DDL beside random writes, with a running sidecar.")
    ] = False,
    reasons: Annotated[bool, typer.Option("--reasons", help="Tell why queries are FULL.")] = False,
) -> None:
    """Play random queries through random windows; a failure is made small and printed."""
    # a query that Spark refuses is told as a failure, without its stack
    logging.getLogger("SQLQueryContextLogger").disabled = True
    first = seed if seed is not None else int(time.time())
    typer.echo(f"SEED={first}")
    if ddl:
        with own_server(pg) as (server, spark):
            found = run_ddl(
                server,
                spark,
                first,
                seconds=seconds,
                shrink_seconds=shrink,
                failures=failures,
                tell=typer.echo,
            )
        raise typer.Exit(1 if found else 0)
    with ExitStack() as stack:
        player: Player = (
            partial(examine, stack.enter_context(own_analyst(pg)))
            if examines
            else partial(play, stack.enter_context(own_ground(pg)))
        )
        tally = run(player, first, seconds=seconds, shrink_seconds=shrink, failures=failures, tell=typer.echo)
    if reasons:
        for line in tally.reasons_told():
            typer.echo(line)
    typer.echo(str(tally))
    raise typer.Exit(1 if tally.stories else 0)


if __name__ == "__main__":
    typer.run(fuzz)
