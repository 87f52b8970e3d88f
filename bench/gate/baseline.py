"""The committed baseline: what each ratio was, how far its samples lay apart, when and on what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.machine import Machine

BASELINE: Final = Path(__file__).parent.parent / "baseline.json"
_TOLD: Final = ("processor", "cores", "memory_gigabytes", "load_at_start", "postgresql", "spark", "python")


def read(path: Path) -> dict[str, float]:
    """The ratios by what they are of; none where there is no baseline yet."""
    if not path.exists():
        return {}
    stored: dict[str, Any] = json.loads(path.read_text())
    return {what: float(entry["ratio"]) for what, entry in stored["ratios"].items()}


def write(path: Path, ratios: Mapping[str, Sequence[float]], machine: Machine, date: str) -> None:
    """Each ratio with the samples it is the median of."""
    told = {
        "date": date,
        "machine": {name: machine[name] for name in _TOLD},
        "ratios": {
            what: {
                "ratio": round(median(samples), 4),
                "lowest": round(min(samples), 4),
                "highest": round(max(samples), 4),
                "samples": [round(sample, 4) for sample in samples],
            }
            for what, samples in ratios.items()
        },
    }
    path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
