"""Loads our own SQL from the `.sql` files next to the code that executes it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def load(package: str, name: str) -> LiteralString:
    """The text of a `.sql` file of a package. It ships with the product, so it is safe to execute."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
