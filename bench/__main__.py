"""`python -m bench`: run the measurements, print the table, write the JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.adopting import adopting
from bench.auto_choice import auto_choice
from bench.beside_the_application import beside_the_application
from bench.bulk_insert import bulk_insert
from bench.capture_cost import capture_cost
from bench.chains import chains
from bench.creating_under_load import creating_under_load
from bench.distributed_read import distributed_read
from bench.figures import Figure
from bench.first_load import first_load
from bench.ground_notice import ground_notice
from bench.ground_polls import ground_polls
from bench.idle_tick import idle_tick
from bench.large_window import large_window
from bench.machine import load, machine
from bench.many_ticks import many_ticks
from bench.neighbour import neighbour
from bench.recalling import recalling
from bench.recursion import recursion
from bench.refresh_cost import refresh_cost
from bench.refresh_growth import refresh_growth
from bench.report import print_details, table_of, write_json
from bench.row_hashing import row_hashing
from bench.scraping import scraping
from bench.second_sidecar import second_sidecar
from bench.single_inserts import single_inserts
from bench.stage import QUICK, Sizes, Stage, stage
from bench.steady_state import steady_state
from bench.sustained import sustained
from bench.through_pooler import through_pooler
from bench.tpch.measurement import tpch
from bench.wal import wal
from bench.web_page import web_page
from bench.wide_tables import wide_tables
from tests.tpch.published import NAMES

MEASUREMENTS: Final[Mapping[str, Callable[[Stage], list[Figure]]]] = {
    "refresh_cost": refresh_cost,
    "refresh_growth": refresh_growth,
    "recursion": recursion,
    "idle_tick": idle_tick,
    "many_ticks": many_ticks,
    "scraping": scraping,
    "ground_polls": ground_polls,
    "ground_notice": ground_notice,
    "creating_under_load": creating_under_load,
    "second_sidecar": second_sidecar,
    "chains": chains,
    "steady_state": steady_state,
    "beside_the_application": beside_the_application,
    "neighbour": neighbour,
    "sustained": sustained,
    "single_inserts": single_inserts,
    "bulk_insert": bulk_insert,
    "capture_cost": capture_cost,
    "wal": wal,
    "distributed_read": distributed_read,
    "first_load": first_load,
    "large_window": large_window,
    "adopting": adopting,
    "through_pooler": through_pooler,
    "recalling": recalling,
    "wide_tables": wide_tables,
    "web_page": web_page,
    "row_hashing": row_hashing,
    "tpch": tpch,
    "auto_choice": auto_choice,
}
RESULTS: Final = Path(__file__).parent / "results"


def bench(
    only: Annotated[list[str] | None, typer.Option(help=f"Only these of: {', '.join(MEASUREMENTS)}.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that it runs.")] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of every measurement.")] = None,
    scale: Annotated[list[float] | None, typer.Option(min=0.01, help="Scales of tpch.")] = None,
    query: Annotated[list[str] | None, typer.Option(help="Queries of tpch, such as q01.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where to write all samples.")] = None,
) -> None:
    """Measure pgtrickle on an embedded PostgreSQL and a local Spark."""
    unknown = sorted(set(only or ()) - set(MEASUREMENTS))
    if unknown:
        raise typer.BadParameter(f"there is no measurement {unknown[0]}; there are {', '.join(MEASUREMENTS)}")
    strange = sorted(set(query or ()) - set(NAMES))
    if strange:
        raise typer.BadParameter(f"there is no query {strange[0]}; there are {NAMES[0]} to {NAMES[-1]}")
    console, now = Console(), datetime.now(UTC)
    sizes = _sized(quick, rounds)
    sizes = replace(
        sizes,
        tpch_scales=tuple(sorted(set(scale or sizes.tpch_scales))),
        tpch_queries=tuple(sorted(set(query or sizes.tpch_queries))),
    )
    figures: list[Figure] = []
    with stage(sizes) as ready:
        described = machine(ready)
        for name in only or MEASUREMENTS:
            with console.status(f"measuring {name}"):
                figures += MEASUREMENTS[name](ready)
            console.print(f"measured {name}", style="dim", highlight=False)
        described["load_at_end"] = load()
    console.print(table_of(figures, "quick: these figures mean nothing" if quick else "pgtrickle bench"))
    print_details(console, figures)
    path = json or RESULTS / f"{now:%Y-%m-%dT%H%M%S}.json"
    write_json(path, figures, described, sizes, f"{now:%Y-%m-%d}")
    console.print(f"all samples: {path}", highlight=False, soft_wrap=True)


def _sized(quick: bool, rounds: int | None) -> Sizes:
    sizes = QUICK if quick else Sizes()
    return sizes if rounds is None else replace(sizes, rounds=rounds, long_rounds=rounds, tpch_rounds=rounds)


if __name__ == "__main__":
    typer.run(bench)
