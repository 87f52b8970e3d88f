"""What is there: the overview, the graph, sources, sidecars and caches."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from pgtrickle.commands.caches import cache_stats
from pgtrickle.commands.graph import captured_sources, dependencies, table_readers
from pgtrickle.commands.monitoring import timeline
from pgtrickle.commands.status import sidecars
from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context, caller_of
from pgtrickle.interfaces.http.refresh_text import past_values

Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = api_router("overview")
    reads, dsn = context.reads, context.dsn

    @routes.get("/overview", responses={200: {"model": models.Overview}, 304: {"description": "Unchanged."}})
    async def overview(request: Request) -> Response:
        """All stream tables and how they are doing, those that need attention first.

        The answer has an ETag. With If-None-Match, an unchanged overview is answered by 304.
        """
        snapshot, caller = await context.snapshot(), caller_of(request)
        tag = f'"{context.hub.name}-{snapshot.version}-{int(caller.has_token)}"'
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = await reads.run(snapshot.body, with_errors=caller.has_token)
        return Response(body, media_type="application/json", headers=headers)

    @routes.get("/timeline", response_model=list[models.Refresh])
    async def refresh_timeline(request: Request, limit: Limit = 50, since: datetime | None = None) -> Any:
        """The latest refreshes of all stream tables, newest first."""
        found = await reads.run(timeline, dsn, limit, since)
        return [past_values(past, with_errors=caller_of(request).has_token) for past in found]

    @routes.get("/graph", response_model=models.Graph)
    async def graph() -> Any:
        """The sources, stream tables and views over them as nodes, and what reads what as edges."""
        snapshot = await context.snapshot()
        nodes: dict[str, dict[str, Any]] = {
            name: {
                "id": name,
                "name": name,
                "kind": "stream_table",
                "state": row.state,
                "schema": row.values["schema"],
                "relation_kind": "stream_table",
            }
            for name, row in snapshot.rows.items()
        }
        edges = []
        for found in await reads.run(dependencies, dsn):
            source, table = str(found.source), str(found.stream_table)
            if table not in nodes:
                continue
            node = {"id": source, "name": source, "kind": "source", "state": None}
            nodes.setdefault(source, {**node, "schema": found.source.schema, "relation_kind": found.kind})
            edges.append({"from": source, "to": table})
        for view in await reads.run(table_readers, dsn):
            reader, table = str(view.reader), str(view.stream_table)
            if table not in nodes:
                continue
            node = {"id": reader, "name": reader, "kind": "reader", "state": None}
            nodes.setdefault(reader, {**node, "schema": view.reader.schema, "relation_kind": view.kind})
            edges.append({"from": table, "to": reader})
        return {"nodes": list(nodes.values()), "edges": edges}

    @routes.get("/capture", response_model=list[models.CapturedSource])
    async def capture() -> Any:
        """Every source: how its changes are captured, how many wait, and for whom."""
        return [asdict(source) for source in await reads.run(captured_sources, dsn)]

    @routes.get("/sidecars", response_model=list[models.Sidecar])
    async def all_sidecars() -> Any:
        """The sidecars that serve this database, oldest first."""
        loop = context.readiness.loop
        this = str(loop.vitals.id) if loop else None
        found = await reads.run(sidecars, dsn)
        return [{**asdict(sidecar), "is_this": sidecar.sidecar_id == this} for sidecar in found]

    @routes.get("/caches", response_model=list[models.CachedQueries])
    async def caches() -> Any:
        """The compiled queries in the catalog, by the version of the code that can use them."""
        return [asdict(cached) for cached in await reads.run(cache_stats, dsn)]

    return routes
