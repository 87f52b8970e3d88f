"""The figures as a table in the terminal, and with all their samples as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.figures import Figure, Grid
from bench.machine import Machine
from bench.stage import Sizes


def table_of(figures: Sequence[Figure], title: str) -> Table:
    """One line for each figure: what, figure, bar, met or short."""
    table = Table(title=title)
    for heading in ("what", "figure", "bar", "", "medians"):
        table.add_column(heading, justify="right" if heading in ("figure", "bar") else "left")
    for figure in figures:
        table.add_row(figure.what, _value(figure), str(figure.bar or ""), _verdict(figure), figure.note)
    return table


def print_details(console: Console, figures: Sequence[Figure]) -> None:
    """Where the time of a figure went, step by step."""
    for figure in figures:
        for title, steps in figure.details.items():
            told = "  ".join(f"{step} {spent:.1f}" for step, spent in steps.items() if spent >= 0.05)
            console.print(f"[bold]{title}[/bold]: {told}")
        for grid in figure.grids:
            console.print(f"\n[bold]{grid.title}[/bold]")
            console.print(_drawn(grid), soft_wrap=True, highlight=False, markup=False)


def write_json(path: Path, figures: Sequence[Figure], machine: Machine, sizes: Sizes, date: str) -> None:
    """Everything that was measured, for whoever wants to look closer."""
    told = {
        "date": date,
        "machine": machine,
        "sizes": {name: getattr(sizes, name) for name in sizes.__dataclass_fields__},
        "figures": [_told(figure) for figure in figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _drawn(grid: Grid) -> str:
    """As Markdown: too wide for a terminal's frame, and ready for the docs."""
    rule = ("---", *["---:"] * (len(grid.headings) - 1))
    return "\n".join(f"| {' | '.join(row)} |" for row in (grid.headings, rule, *grid.rows))


def _told(figure: Figure) -> dict[str, object]:
    return {
        "what": figure.what,
        "value": figure.value,
        "unit": figure.unit,
        "bar": str(figure.bar) if figure.bar else None,
        "is_met": figure.is_met,
        "note": figure.note,
        "details": figure.details,
        "grids": {
            grid.title: [dict(zip(grid.headings, row, strict=True)) for row in grid.rows]
            for grid in figure.grids
        },
        "samples": {name: [round(value, 4) for value in side] for name, side in figure.samples.items()},
    }


def _value(figure: Figure) -> str:
    if figure.value is None:
        return "–"
    # a count has no digits behind the point
    shown = f"{figure.value}" if isinstance(figure.value, int) else f"{figure.value:.2f}"
    return f"{shown} {figure.unit}"


def _verdict(figure: Figure) -> str:
    if figure.is_met is None:
        return ""
    return "[green]met[/green]" if figure.is_met else "[red]short[/red]"
