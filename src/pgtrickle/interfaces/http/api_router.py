"""A router below the prefix of the API, whose routes answer errors as problems."""

from __future__ import annotations

from fastapi import APIRouter

from pgtrickle.interfaces.http.access_table import API
from pgtrickle.interfaces.http.problems import MEDIA_TYPE, Problem


def api_router(subject: str) -> APIRouter:
    """A router for routes about one subject."""
    schema = {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}
    return APIRouter(
        prefix=API,
        tags=[subject],
        responses={"default": {"description": "An error.", "content": {MEDIA_TYPE: schema}}},
    )
