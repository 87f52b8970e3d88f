"""How the installation fares: its checks, the alerts that it keeps, and metrics for Prometheus."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from pgtrickle.commands.alerts import alerts
from pgtrickle.commands.monitoring import health
from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.alert_text import alert_values
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context, caller_of
from pgtrickle.model.errors import UnknownAddress

_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


def router(context: Context) -> APIRouter:
    """The routes of the API."""
    routes = api_router("monitoring")
    reads, dsn = context.reads, context.dsn

    @routes.get("/health", response_model=list[models.HealthCheck])
    async def health_checks() -> Any:
        """The checks of the installation, in a fixed order."""
        found = await reads.run(health, dsn)
        return [{**asdict(check), "severity": check.severity.value} for check in found]

    @routes.get("/doctor", response_model=list[models.Finding])
    async def findings() -> Any:
        """What is right and wrong with this host and the database, and what to do. It changes nothing."""
        from pgtrickle.commands.doctor import doctor

        found = await context.waits.run(doctor, context.settings)
        return [{**asdict(one), "severity": one.severity.value} for one in found]

    @routes.get("/alerts", response_model=list[models.Alert])
    async def kept_alerts(request: Request, since: datetime | None = None) -> Any:
        """The alerts since a moment, oldest first; without one, those of the last hour."""
        has_token = caller_of(request).has_token
        return [alert_values(alert, with_errors=has_token) for alert in await reads.run(alerts, dsn, since)]

    return routes


def metrics_router(context: Context) -> APIRouter:
    """The route for Prometheus, outside the API."""
    routes = APIRouter(tags=["monitoring"])

    @routes.get("/metrics", response_class=Response, responses={200: _TEXT})
    async def metrics() -> Response:
        """The metrics of this sidecar, in the text format of Prometheus."""
        if context.metrics is None:
            raise UnknownAddress(
                "this server has no metrics", hint="they need a sidecar and pip install 'pgtrickle[http]'"
            )
        from pgtrickle.interfaces.metrics import CONTENT_TYPE

        body = await context.reads.run(context.metrics.render)
        return Response(body, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return routes
