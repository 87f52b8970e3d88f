"""What changes something: create, alter, drop, refresh, pause, gate, drain. All of it needs the token."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from pgtrickle.commands import define, drain, gate
from pgtrickle.commands.bulk import bulk_create
from pgtrickle.commands.caches import clear_caches
from pgtrickle.commands.repair import repair
from pgtrickle.commands.serving import refresh_served, verify_served
from pgtrickle.interfaces.http import models, requests
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context
from pgtrickle.interfaces.http.path_names import SqlName
from pgtrickle.model.errors import BadRequest, NoSidecar

_SUSPENDED: define.Options = {"status": "SUSPENDED"}


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = api_router("actions")
    works, waits, dsn = context.works, context.waits, context.dsn

    async def row(name: str) -> Any:
        return (await context.changed_row(name)).values

    @routes.post("/tables", status_code=201, response_model=models.TableRow)
    async def create(given: requests.CreateTable) -> Any:
        """Create a stream table. It is empty until its first refresh."""
        if given.if_not_exists and given.or_replace:
            raise BadRequest("if_not_exists and or_replace exclude each other", hint="give one of them")
        options = given.given("name", "query", "owner", "if_not_exists", "or_replace")
        command = (
            define.create_or_replace
            if given.or_replace
            else define.create_if_not_exists
            if given.if_not_exists
            else define.create
        )
        await works.run(command, dsn, given.name, given.query, options, given.owner)
        return await row(given.name)

    @routes.post("/bulk-create", status_code=201, response_model=list[models.CreatedTable])
    async def create_many(given: requests.BulkCreate) -> Any:
        """Create several stream tables in one transaction, which may read one another."""
        wanted = [one.given() for one in given.definitions]
        made = await works.run(bulk_create, dsn, wanted)
        context.observer.ask()
        return [asdict(one) for one in made]

    @routes.patch("/tables/{name}", response_model=models.TableRow)
    async def alter(name: SqlName, given: requests.AlterTable) -> Any:
        """Change the query or the options of a stream table, with the rights of its owner."""
        await works.run(define.alter_as_owner, dsn, name, given.given())
        return await row(name)

    @routes.delete("/tables/{name}", status_code=204, response_class=Response)
    async def drop(name: SqlName, cascade: bool = False) -> Response:
        """Drop a stream table; with `cascade`, everything that reads it too."""
        await works.run(define.drop, dsn, name, cascade=cascade)
        context.observer.ask()
        return Response(status_code=204)

    @routes.post("/tables/{name}/refresh", response_model=models.Outcome)
    async def refresh(name: SqlName) -> Any:
        """Refresh a stream table now, and wait for it."""
        done = await waits.run(refresh_served, dsn, name)
        if done is None:
            raise _no_sidecar()
        return {
            "action": done.action.value,
            "rows_inserted": done.rows_inserted,
            "rows_deleted": done.rows_deleted,
            "ms": done.milliseconds,
            "reason": done.reason,
        }

    @routes.post("/tables/{name}/pause", response_model=models.TableRow)
    async def pause(name: SqlName) -> Any:
        """Suspend a stream table: it is not refreshed until it is resumed."""
        await works.run(define.alter, dsn, name, _SUSPENDED)
        return await row(name)

    @routes.post("/tables/{name}/resume", response_model=models.TableRow)
    async def resume(name: SqlName) -> Any:
        """Resume a suspended or failed stream table."""
        await works.run(define.resume, dsn, name)
        return await row(name)

    @routes.post("/tables/{name}/repair", response_model=models.Sentences)
    async def repair_table(name: SqlName) -> Any:
        """Have a stream table loaded again, and repair the capture of its sources."""
        return {"done": await works.run(repair, dsn, name)}

    @routes.post("/tables/{name}/verify", response_model=models.Verified)
    async def verify(name: SqlName, given: requests.Verify | None = None) -> Any:
        """Compare a stream table with PostgreSQL's own result of its query, in one snapshot."""
        seconds = (given or requests.Verify()).timeout
        found = await waits.run(verify_served, dsn, name, seconds)
        if found is None:
            raise _no_sidecar()
        if not found:
            raise BadRequest(f"{name} has not been loaded yet", hint="refresh it first")
        return {**asdict(found[0]), "name": str(found[0].name)}

    @routes.post("/repair", response_model=models.Sentences)
    async def repair_all() -> Any:
        """Repair everything in the database, for example after a restore."""
        return {"done": await works.run(repair, dsn)}

    @routes.post("/verify", response_model=list[models.Verified])
    async def verify_all(given: requests.Verify | None = None) -> Any:
        """Compare all stream tables that the role of the server may act for, one after the other."""
        found = await waits.run(verify_served, dsn, None, (given or requests.Verify()).timeout)
        if found is None:
            raise _no_sidecar()
        return [{**asdict(one), "name": str(one.name)} for one in found]

    @routes.post("/sources/{name}/gate", response_model=models.Names)
    async def close_gate(name: SqlName) -> Any:
        """Pause every stream table that depends on a source, for example during a bulk load."""
        return {"tables": await works.run(gate.gate, dsn, name)}

    @routes.post("/sources/{name}/ungate", response_model=models.Changed)
    async def open_gate(name: SqlName) -> Any:
        """Let the stream tables that depend on a source be refreshed again."""
        return {"changed": await works.run(gate.ungate, dsn, name)}

    @routes.post("/drain", response_model=models.Done)
    async def drain_all(given: requests.Drain | None = None) -> Any:
        """Let no refresh start in any sidecar, and wait for the running ones."""
        await works.run(drain.drain, dsn, (given or requests.Drain()).timeout)
        return {"ok": True}

    @routes.post("/undrain", response_model=models.Changed)
    async def undrain() -> Any:
        """Let refreshes start again."""
        return {"changed": await works.run(drain.undrain, dsn)}

    @routes.post("/clear-caches", response_model=models.Cleared)
    async def clear() -> Any:
        """Make every sidecar compile all queries again."""
        return {"entries": await works.run(clear_caches, dsn)}

    return routes


def _no_sidecar() -> NoSidecar:
    return NoSidecar("no sidecar serves this database", hint="start one with `pgtrickle run`")
