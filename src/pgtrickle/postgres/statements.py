"""SQL that we wrote ourselves, read from the `.sql` files beside the code that runs it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def load(package: str, name: str) -> LiteralString:
    """The text of a `.sql` file of a package; it ships with the product, so it may run as it is."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
