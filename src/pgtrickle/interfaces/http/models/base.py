"""What all values of the API have in common."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

State = Literal["fresh", "late", "failing", "suspended", "initializing", "waiting"]
Cells = list[str | None]


class Model(BaseModel):
    """A value with exactly these fields."""

    model_config = ConfigDict(extra="forbid")
