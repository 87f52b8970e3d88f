"""What is at the top of a server of several databases: their list, signing in, probes, metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp

from pgtrickle import __version__
from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.access_table import API, FLEET_ACCESS
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.application import DESCRIPTION, guarded
from pgtrickle.interfaces.http.context import caller_of
from pgtrickle.interfaces.http.openapi import document
from pgtrickle.interfaces.http.problems import add_handlers
from pgtrickle.interfaces.http.routes import page, session
from pgtrickle.model.errors import UnknownAddress

if TYPE_CHECKING:
    from pgtrickle.interfaces.http.fleet_server import FleetServer
    from pgtrickle.scheduler.service.fleet import Member

PAGE = "databases.html"


def top_application(server: FleetServer) -> ASGIApp:
    """The application at the top, behind the guard."""
    return guarded(build_top(server), server.gate, FLEET_ACCESS)


def build_top(server: FleetServer) -> FastAPI:
    """The same without the guard, for tests that look at its routes."""
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
    for routes in (_databases(server), session.router(server.gate), _service(server)):
        app.router.routes.extend(routes.routes)

    @app.get(f"{API}/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(document(app))

    app.router.routes.extend(page.router(PAGE).routes)
    return app


def _databases(server: FleetServer) -> APIRouter:
    routes = api_router("databases")

    @routes.get("/databases", response_model=list[models.FleetDatabase])
    async def databases(request: Request) -> Any:
        """The databases that this sidecar serves, each with its state, its workers and its stream tables."""
        has_token = caller_of(request).has_token
        members = server.fleet.members() if server.fleet is not None else ()
        return [_values(member, with_error=has_token) for member in members]

    return routes


def _service(server: FleetServer) -> APIRouter:
    routes = APIRouter(tags=["service"])

    @routes.get("/databases", include_in_schema=False)
    async def missing(request: Request) -> Response:
        from pgtrickle.interfaces.http.fleet_server import unknown_database

        raise unknown_database(str(request.scope["state"].get("missing", "")))

    @routes.get("/healthz", response_model=models.Done)
    async def healthz() -> Any:
        """The process is alive."""
        return {"ok": True}

    @routes.get("/readyz", response_model=models.Readiness, responses={503: {"model": models.Readiness}})
    async def readyz(request: Request, response: Response) -> Any:
        """Whether Spark is there and at least one database is served.

        Without the right to read, the answer does not say why.
        """
        checks = _checks(server)
        is_ready = checks["spark"] == "ok" and checks["databases"].startswith("ok")
        response.status_code = 200 if is_ready else 503
        response.headers["Cache-Control"] = "no-store"
        return {"ready": is_ready, "checks": checks if caller_of(request).may_read else {}}

    @routes.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """The metrics of this sidecar, each with its database, in the text format of Prometheus."""
        if server.metrics is None:
            raise UnknownAddress("this server has no metrics", hint="they need pip install 'pgtrickle[http]'")
        from pgtrickle.interfaces.metrics import CONTENT_TYPE

        body = await asyncio.to_thread(server.metrics.render)
        return Response(body, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return routes


def _checks(server: FleetServer) -> dict[str, str]:
    members = server.fleet.members() if server.fleet is not None else ()
    served = sum(member.loop.state.value in ("serving", "resting") for member in members)
    supply = members[0].engine.supply if members else None
    has_spark = supply is not None and supply.current is not None
    count = f"{served} of {len(members)} are served"
    return {"spark": "ok" if has_spark else "starting", "databases": f"ok, {count}" if served else count}


def _values(member: Member, *, with_error: bool) -> dict[str, Any]:
    from pgtrickle.interfaces.http.fleet_server import site_path

    current, report = member.loop.current, member.report()
    refused = member.why_refused
    return {
        "name": member.database.name,
        "path": site_path(member.database.name),
        "state": report["state"],
        "error": f"{refused.code}: {refused.message}" if refused is not None and with_error else None,
        "stream_tables": len(current.definitions.tables) if current is not None else None,
        "behind": report["behind"],
        "statuses": {k.value: n for k, n in current.statuses().items()} if current is not None else {},
        "busy": report["busy"],
        "queued": report["queued"],
        "quota": report["quota"],
    }
