"""The OpenAPI document: the routes as FastAPI describes them, with our errors and what each route needs."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from pgtrickle.interfaces.http.access import Need
from pgtrickle.interfaces.http.access_table import ACCESS
from pgtrickle.interfaces.http.problems import Problem

_SCHEME: Final = "token"
_FRAMEWORK_ERRORS: Final = ("HTTPValidationError", "ValidationError")
"""What FastAPI would answer to a bad request. We answer with a problem."""


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an application."""
    found = app.openapi()
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORK_ERRORS:
        schemas.pop(name, None)
    schemas[Problem.__name__] = Problem.model_json_schema()
    components["securitySchemes"] = {
        _SCHEME: {"type": "http", "scheme": "bearer", "description": "The token of the HTTP server."}
    }
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            operation["responses"].pop("422", None)
            need = ACCESS.get((method.upper(), path), Need.TOKEN)
            if need is not Need.NOTHING:
                # an empty requirement says that the token is optional
                operation["security"] = [{_SCHEME: []}] + ([{}] if need is Need.READ else [])
    return found
