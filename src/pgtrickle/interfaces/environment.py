"""Settings of an engine that may come from the environment."""

from __future__ import annotations

import os
from typing import Final

from pgtrickle.model.errors import CommandRefused
from pgtrickle.postgres.pool import MOST
from pgtrickle.postgres.pooling import Pooling

POOLER_VARIABLE: Final = "PGTRICKLE_POOLER"
MAX_CONNECTIONS_VARIABLE: Final = "PGTRICKLE_MAX_CONNECTIONS"


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
