"""The version of the compiling code: plans of another version are never read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

_COMPILING = ("model", "plan", "postgres", "refresh/caching", "refresh/compilation.py")
"""All code that decides what a program is, and how it is stored."""


@cache
def code_version() -> str:
    """A digest of the compiling code and the version of its parser."""
    digest = hashlib.sha256(version("sqlglot").encode())
    for part in _COMPILING:
        for name, content in _contents(files("pgtrickle").joinpath(part), part):
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:32]


def _contents(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if place.is_file():
        yield name, place.read_bytes()
        return
    for inner in sorted(place.iterdir(), key=lambda one: one.name):
        if inner.is_dir() or inner.name.endswith((".py", ".sql")):
            yield from _contents(inner, f"{name}/{inner.name}")
