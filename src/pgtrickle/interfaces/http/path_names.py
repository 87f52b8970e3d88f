"""Names in paths. A quoted name may contain a slash, which must not end its part of the path."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Path
from pydantic import AfterValidator
from starlette.types import Scope

_SLASH: Final = "\U000f0000"
"""Stands for an encoded slash while routes are found. It has no meaning of its own in Unicode."""

SqlName = Annotated[
    str,
    Path(max_length=300, description="A name as SQL, URL-encoded: sales, shop.%22Big%20Sales%22."),
    AfterValidator(lambda name: name.replace(_SLASH, "/")),
]


def with_parts(scope: Scope) -> Scope:
    """The same request, with slashes only between the parts of its path."""
    raw = scope.get("raw_path")
    if not isinstance(raw, bytes) or b"%2f" not in raw.lower():
        return scope
    parts = [unquote(part).replace("/", _SLASH) for part in raw.decode("ascii", "replace").split("/")]
    return {**scope, "path": "/".join(parts)}
