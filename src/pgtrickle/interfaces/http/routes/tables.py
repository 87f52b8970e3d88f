"""One stream table: its definition, plan and history; with the token, its rows."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request

from pgtrickle.commands.rows import table_rows
from pgtrickle.commands.status import history
from pgtrickle.commands.table_detail import table_detail
from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context, caller_of
from pgtrickle.interfaces.http.path_names import SqlName
from pgtrickle.interfaces.http.refresh_text import past_values
from pgtrickle.interfaces.http.routes.overview import Limit
from pgtrickle.interfaces.http.table_row import table_values, time_text
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.hints import Interface

_OPERATOR: Final = re.compile(r"^  (?P<indent> *)(?P<text>.*?)(?:  \[(?P<kind>[^\]]*)\])?$")
_HINT: Final = re.compile(r"\((?P<hint>[^()]*(?:\([^()]*\)[^()]*)*)\)$")
_HEADING: Final = "operators, with the kind of each delta rule:"
_HIDDEN: Final = "the plan cannot be shown, and the reason is not for you"
_INDEXES: Final = "indexes that lookups lack:"
RowLimit = Annotated[int, Query(ge=1, le=200, description="How many rows at most.")]


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = api_router("one stream table")
    reads, dsn = context.reads, context.dsn

    @routes.get("/tables/{name}", response_model=models.TableDetail)
    async def detail(name: SqlName, request: Request) -> Any:
        """The definition, the state and the plan of a stream table."""
        has_token = caller_of(request).has_token
        found = await reads.run(table_detail, dsn, name)
        status, values = found.overview.status, table_values(found.overview)
        row = (await context.snapshot()).rows.get(str(status.name))
        plan, plan_error = await _plan(context, str(status.name))
        error = status.last_error if has_token else None
        hint = _HINT.search(error) if error else None
        return {
            **values,
            "error": error,
            "recent": row.values["recent"] if row else [],
            "version": row.values["version"] if row else 0,
            "query": status.query,
            "defined_by": status.owner,
            "options": found.options,
            "columns": [asdict(column) for column in found.columns],
            "sources": [asdict(source) for source in found.sources],
            "readers": found.readers,
            "downgrade_reason": status.downgrade_reason,
            "last_error": error,
            "hint": hint["hint"] if hint else None,
            "missing_indexes": _section(plan, _INDEXES, without="none"),
            "plan": plan,
            "plan_error": plan_error if has_token and not context.hides_errors else plan_error and _HIDDEN,
            "operators": _operators(plan),
            "repairs": status.repairs,
            "last_repair_at": time_text(status.last_repair_at),
        }

    @routes.get("/tables/{name}/history", response_model=list[models.Refresh])
    async def table_history(name: SqlName, request: Request, limit: Limit = 50) -> Any:
        """The latest refreshes of a stream table, newest first."""
        found = await reads.run(history, dsn, name, limit)
        return [past_values(past, with_errors=caller_of(request).has_token) for past in found]

    @routes.get("/tables/{name}/rows", response_model=models.RowSet)
    async def rows(name: SqlName, limit: RowLimit = 20) -> Any:
        """Some rows of a stream table, as it is now."""
        return asdict(await reads.run(table_rows, dsn, name, limit))

    return routes


async def _plan(context: Context, name: str) -> tuple[str | None, str | None]:
    """How a stream table is maintained, or why that is unknown."""
    if context.engine is None:
        return None, None
    from pgtrickle.commands.explain import explain

    try:
        return (await context.reads.run(explain, context.engine, name)).text, None
    except PgTrickleError as error:
        return None, f"{error.message}. {error.hint_for(Interface.SQL) or ''}".strip()


def _section(plan: str | None, heading: str, without: str) -> list[str]:
    """The lines below a heading of a plan."""
    lines = (plan or "").splitlines()
    if heading not in lines:
        return []
    found = []
    for line in lines[lines.index(heading) + 1 :]:
        if not line.startswith("  "):
            break
        found.append(line[2:])
    return [line for line in found if line != without]


def _operators(plan: str | None) -> list[dict[str, Any]]:
    """The operators of a plan, each with its depth in the tree and the kind of its delta rule."""
    found = []
    for line in _section(plan, _HEADING, without=""):
        match = _OPERATOR.match(f"  {line}")
        assert match is not None
        found.append({"depth": len(match["indent"]) // 2, "text": match["text"], "kind": match["kind"]})
    return found
