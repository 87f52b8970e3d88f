"""For orchestrators: whether the process is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.context import Context, caller_of
from pgtrickle.interfaces.http.readiness import is_ready


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["service"])

    @routes.get("/healthz", response_model=models.Done)
    async def healthz() -> Any:
        """The process is alive."""
        return {"ok": True}

    @routes.get("/readyz", response_model=models.Readiness, responses={503: {"model": models.Readiness}})
    async def readyz(request: Request, response: Response) -> Any:
        """Whether the database answers, pgtrickle is installed, the scheduler polls, and Spark is there.

        Without the right to read, the answer does not say why.
        """
        checks = await context.reads.run(context.readiness.checks)
        ready = is_ready(checks)
        response.status_code = 200 if ready else 503
        response.headers["Cache-Control"] = "no-store"
        return {"ready": ready, "checks": checks if caller_of(request).may_read else {}}

    return routes
