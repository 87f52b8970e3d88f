"""`python -m bench.gate`: measure the ratios, compare them with the baseline, fail on a loss."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.gate.baseline import BASELINE, read, write
from bench.gate.judging import REPEATS, TOLERANCE, Judged, Verdict, is_passed, judged, missing
from bench.gate.ratios import pairs
from bench.machine import machine
from bench.stage import QUICK, Sizes, stage

COLOURS = {Verdict.LOST: "red", Verdict.GAINED: "green", Verdict.NEW: "yellow", Verdict.MISSING: "yellow"}


def gate(
    update: Annotated[bool, typer.Option("--update", help="Write a new baseline.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that it runs.")] = False,
    baseline: Annotated[Path, typer.Option(help="The baseline to compare with, or to write.")] = BASELINE,
) -> None:
    """Compare ratios with the baseline; exit code 1 if one is worse by more than a quarter."""
    console, started, now = Console(), time.monotonic(), datetime.now(UTC)
    with stage(QUICK if quick else Sizes()) as ready:
        described = machine(ready)
        with pairs(ready) as measured:
            if update:
                found = {what: [pair.ratio() for _ in range(REPEATS)] for what, pair in measured.items()}
                write(baseline, found, described, f"{now:%Y-%m-%d}")
                console.print(f"new baseline: {baseline}", highlight=False, soft_wrap=True)
            known = read(baseline)
            verdicts = [] if update else [judged(w, known.get(w), pair.ratio) for w, pair in measured.items()]
            verdicts += missing(known, measured)
    if not update:
        console.print(_table(verdicts))
    console.print(f"{time.monotonic() - started:.0f} s", style="dim", highlight=False)
    raise typer.Exit(0 if is_passed(verdicts) else 1)


def _table(verdicts: list[Judged]) -> Table:
    table = Table(title=f"worse by more than {TOLERANCE:.0%} is a loss")
    for heading in ("what", "baseline", "now", "change", "verdict"):
        table.add_column(heading, justify="left" if heading in ("what", "verdict") else "right")
    for one in verdicts:
        colour = COLOURS.get(one.verdict, "default")
        again = f", measured {len(one.measured)} times" if len(one.measured) > 1 else ""
        verdict = f"[{colour}]{one.verdict.value}[/{colour}]{again}"
        change = "–" if one.change is None else f"{one.change:+.0%}"
        table.add_row(one.what, _shown(one.baseline), _shown(one.now), change, verdict)
    return table


def _shown(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3g} ×"


if __name__ == "__main__":
    typer.run(gate)
