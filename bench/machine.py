"""What a run was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import psycopg
import pyarrow
import pyspark

import pgtrickle
from bench.stage import SETTINGS, Stage

Machine = dict[str, str | int | float | dict[str, str]]


def machine(stage: Stage) -> Machine:
    """Cores, memory, load, versions and settings."""
    with psycopg.connect(stage.server.dsn()) as connection:
        postgres = connection.info.parameter_status("server_version") or ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gigabytes": round(memory / (1 << 30), 1),
        "load_at_start": load(),
        "system": f"{platform.system()} {platform.release()}",
        "pgtrickle": pgtrickle.__version__,
        "python": platform.python_version(),
        "postgresql": postgres,
        "postgresql_settings": SETTINGS,
        "spark": pyspark.__version__,
        "pyarrow": pyarrow.__version__,
        "java": _java(),
    }


def load() -> float:
    """How many processes want a core just now, ours or not: far above the cores, the figures are noise."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _java() -> str:
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return said.splitlines()[0] if said else ""
