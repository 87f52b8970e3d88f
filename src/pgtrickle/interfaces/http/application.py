"""Puts the routes together behind the guard."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp

from pgtrickle import __version__
from pgtrickle.interfaces.http.access import Gate, Need
from pgtrickle.interfaces.http.access_table import ACCESS, API
from pgtrickle.interfaces.http.context import Context
from pgtrickle.interfaces.http.guard import Guard
from pgtrickle.interfaces.http.openapi import document
from pgtrickle.interfaces.http.problems import add_handlers
from pgtrickle.interfaces.http.routes import (
    actions,
    definitions,
    downstream,
    events,
    feeds,
    monitoring,
    overview,
    page,
    service,
    session,
    tables,
    validation,
)

DESCRIPTION = (
    "The API of a pgtrickle sidecar. Reading is open on the loopback interface; everything that writes or"
    " shows rows needs the token, as `Authorization: Bearer …`. Errors are `application/problem+json`"
    " with a code that docs/ERRORS.md explains."
)


def build(context: Context) -> FastAPI:
    """The application without the guard, for tests that look at its routes."""
    app = FastAPI(
        title="pgtrickle",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    add_handlers(app)
    # as one flat list, in which the guard finds the route of a request
    reading = (overview, tables, feeds, definitions, monitoring, validation)
    for subject in (*reading, actions, downstream, events, service):
        app.router.routes.extend(subject.router(context).routes)
    app.router.routes.extend(session.router(context.gate).routes)

    @app.get(f"{API}/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(document(app))

    app.router.routes.extend(monitoring.metrics_router(context).routes)
    app.router.routes.extend(page.router().routes)
    return app


def guarded(app: FastAPI, gate: Gate, access: Mapping[tuple[str, str], Need] = ACCESS) -> ASGIApp:
    """The application as it is served."""
    return Guard(app, gate=gate, routes=app.routes, access=access)
