"""Settings of an engine that may come from the environment."""

from __future__ import annotations

import os
import re
from typing import Final

from pgtrickle.model.errors import CommandRefused
from pgtrickle.postgres.pool import MOST
from pgtrickle.postgres.pooling import Pooling

POOLER_VARIABLE: Final = "PGTRICKLE_POOLER"
MAX_CONNECTIONS_VARIABLE: Final = "PGTRICKLE_MAX_CONNECTIONS"
MEMORY_LIMIT_VARIABLE: Final = "PGTRICKLE_MEMORY_LIMIT"
_SIZE: Final = re.compile(r"\s*(\d+)\s*([kmgt]?)i?b?\s*\Z", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
LEAST_MEMORY: Final = 1 << 20


def pooling_of(given: str | None) -> Pooling:
    """What was given, else the environment, else to be found out."""
    text = given or os.environ.get(POOLER_VARIABLE) or Pooling.AUTO.value
    try:
        return Pooling(text)
    except ValueError:
        raise CommandRefused(
            f"pooler {text!r} is none of auto, yes and no", hint="auto finds out by itself"
        ) from None


def max_connections_of(given: int | None) -> int:
    """What was given, else the environment, else what is sensible."""
    if given is not None:
        return given
    text = os.environ.get(MAX_CONNECTIONS_VARIABLE) or str(MOST)
    try:
        return int(text)
    except ValueError:
        raise CommandRefused(
            f"{MAX_CONNECTIONS_VARIABLE} is {text!r}, which is no number", hint=f"for example {MOST}"
        ) from None


def memory_limit_of(given: int | str | None) -> int | None:
    """The bytes that were given, else those of the environment; None leaves them to the heap of Spark."""
    text = str(given) if given is not None else os.environ.get(MEMORY_LIMIT_VARIABLE)
    if not text:
        return None
    parts = _SIZE.match(text)
    size = int(parts[1]) * _UNITS[parts[2].lower()] if parts else 0
    if size < LEAST_MEMORY:
        raise CommandRefused(
            f"the memory limit {text!r} is not a size of at least 1 MB", hint="for example 512MB or 2GB"
        )
    return size
