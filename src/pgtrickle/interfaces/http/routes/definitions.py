"""Definitions as text, materialized views that could be stream tables, and advice about them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from pgtrickle.commands.materialized_views import materialized_views
from pgtrickle.interfaces.http import models, requests
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context

Names = Annotated[list[str], Query(description="Only these stream tables.", max_length=1000)]


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = api_router("definitions")
    reads, works, dsn = context.reads, context.works, context.dsn

    @routes.get("/export", response_model=models.Definitions)
    async def export_definitions(name: Names = []) -> Any:  # noqa: B006 (FastAPI copies it)
        """The definitions of stream tables as a text that `apply` takes; without names, of all of them."""
        from pgtrickle.commands.definitions import export

        return {"definitions": await reads.run(export, dsn, name)}

    @routes.post("/apply", response_model=list[models.PlannedChange])
    async def apply_definitions(given: requests.Apply) -> Any:
        """Create, alter and drop stream tables to match definitions, all or nothing."""
        return await works.run(_apply, dsn, given)

    @routes.get("/materialized-views", response_model=list[models.MaterializedView])
    async def all_materialized_views() -> Any:
        """The materialized views of the database, the largest first."""
        found = await reads.run(materialized_views, dsn)
        return [{**asdict(view), "name": str(view.name)} for view in found]

    @routes.post("/adopt", response_model=models.Adoption)
    async def adopt_view(given: requests.Adopt) -> Any:
        """Turn a materialized view into a stream table; with `dry_run`, only say what that would mean."""
        from pgtrickle.commands.adopt import adopt, adoption_plan

        if given.dry_run:
            plan = await works.run(adoption_plan, dsn, given.name, given.refresh_mode or "AUTO")
            modes = {"asked_mode": plan.asked_mode.value, "effective_mode": plan.effective_mode.value}
            return {"plan": {**asdict(plan), "name": str(plan.name), **modes}, "table": None, "notices": []}
        notices = await works.run(adopt, dsn, given.name, given.given("name", "dry_run"))
        row = await context.changed_row(given.name)
        return {"plan": None, "table": row.values, "notices": notices}

    @routes.get("/advice", response_model=models.Advice)
    async def advice(limit: Annotated[int, Query(ge=0, le=100)] = 10) -> Any:
        """What would gain most as a stream table: materialized views and expensive statements."""
        from pgtrickle.commands.advise import advise

        found = await context.waits.run(advise, dsn, limit)
        return {"candidates": [_candidate(one) for one in found.candidates], "notes": found.notes}

    return routes


def _apply(dsn: str, given: requests.Apply) -> list[dict[str, Any]]:
    from pgtrickle.commands.definitions import apply, plan
    from pgtrickle.interfaces.ddl.definition_files import read_definitions

    file = read_definitions(given.definitions)
    done = (plan if given.dry_run else apply)(dsn, file, given.set_name)
    return [{"action": one.action.value, "name": one.name, "changes": one.changes} for one in done]


def _candidate(found: Any) -> dict[str, Any]:
    mode = found.effective_mode
    return {**asdict(found), "effective_mode": mode.value if mode else None}
