"""Carries errors through a JSON document: a sidecar stores them, and the command that asked raises them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pgtrickle.model.errors import Diverged, PgTrickleError, RefreshFailed


def error_to_json(error: PgTrickleError) -> dict[str, Any]:
    """The error as JSON: class, code, SQLSTATE, message, hint, and the rows that differ if it has any."""
    value: dict[str, Any] = {
        "class": type(error).__name__,
        "code": error.code,
        "sqlstate": error.reported_sqlstate,
        "message": error.message,
        "hint": error.hint,
        "detail": error.detail,
        "excerpt": error.excerpt,
    }
    if isinstance(error, Diverged):
        value["rows"] = list(error.rows)
    return value


def error_from_json(value: Mapping[str, Any]) -> PgTrickleError:
    """The error that was stored. A class that this version does not have becomes `RefreshFailed`."""
    known = {kind.__name__: kind for kind in _error_classes(PgTrickleError)}
    kind = known.get(value["class"], RefreshFailed)
    error = kind(value["message"], hint=value["hint"])
    error.detail, error.excerpt = value.get("detail"), value.get("excerpt")
    if isinstance(error, Diverged):
        error.rows = tuple(value.get("rows", ()))
    return error


def _error_classes(parent: type[PgTrickleError]) -> Iterator[type[PgTrickleError]]:
    yield parent
    for child in parent.__subclasses__():
        yield from _error_classes(child)
