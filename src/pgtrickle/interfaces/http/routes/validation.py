"""Checks a query and shows some rows of it, with the rights of the role that would own the stream table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from pgtrickle.interfaces.http import models, requests
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context
from pgtrickle.model.errors import Cancelled, PgTrickleError


def router(context: Context) -> APIRouter:
    """The route."""
    routes = api_router("validation")

    @routes.post("/validate", response_model=models.Validation)
    async def validate_query(given: requests.ValidateQuery) -> Any:
        """Check a query without creating anything: how it would be refreshed, and what it lacks.

        A query that cannot be a stream table is an error, with the position of the mistake if it is known.
        """
        return await context.reads.run(_validate, context.dsn, given)

    return routes


def _validate(dsn: str, given: requests.ValidateQuery) -> dict[str, Any]:
    # the compiler takes a while to import, and most servers start without it
    from pgtrickle.commands.query_rows import query_rows
    from pgtrickle.commands.validate import validate

    found = validate(dsn, given.query, given.refresh_mode, given.name, given.owner)
    rows, rows_error = None, None
    if given.with_rows and not found.missing_grants:
        try:
            rows = query_rows(dsn, found, given.owner)
        except Cancelled:
            rows_error = "the query takes too long to show rows of it here"
        except PgTrickleError as error:
            rows_error = error.message
    return {
        "asked_mode": found.asked_mode.value,
        "effective_mode": found.effective_mode.value,
        "reason": found.reason,
        "columns": [asdict(column) for column in found.columns],
        "sources": found.sources,
        "missing_grants": found.missing_grants,
        "missing_indexes": found.missing_indexes,
        "reads": found.reads,
        "rows": rows,
        "rows_error": rows_error,
    }
