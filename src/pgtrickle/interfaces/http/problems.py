"""Errors as `application/problem+json`, with our codes and without anything that is not for the client."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from pgtrickle.interfaces.event_log import LOG
from pgtrickle.model.errors import (
    BadRequest,
    PgTrickleError,
    RequestTooLarge,
    ServerBusy,
    TooManyAttempts,
    UnknownAddress,
    WrongMethod,
)
from pgtrickle.model.hints import Interface

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_SECONDS: Final = {ServerBusy.http_status: 2, TooManyAttempts.http_status: 30}


class Problem(BaseModel):
    """An error."""

    type: str = Field(description="A link to the explanation of the code, relative to the documentation.")
    title: str = Field(description="What is wrong.")
    status: int
    detail: str | None = None
    code: str = Field(description="The code of the error, such as PGT-S002.")
    sqlstate: str
    hint: str | None = Field(default=None, description="What to do.")
    position: int | None = Field(
        default=None, description="Where in the query the mistake is: the number of its character, from 1."
    )


def problem(error: PgTrickleError, headers: dict[str, str] | None = None) -> JSONResponse:
    """The response for an error."""
    found = Problem(
        type=f"ERRORS.md#{error.code.lower()}-{type(error).__name__.lower()}",
        title=error.message,
        status=error.http_status,
        detail=error.detail,
        code=error.code,
        sqlstate=error.reported_sqlstate,
        hint=error.hint_for(Interface.SQL),
        position=error.position,
    )
    sent = dict(headers or {})
    if error.http_status in _RETRY_SECONDS:
        sent["Retry-After"] = str(_RETRY_SECONDS[error.http_status])
    if error.http_status == 401:
        sent["WWW-Authenticate"] = 'Bearer realm="pgtrickle"'
    return JSONResponse(found.model_dump(), error.http_status, headers=sent, media_type=MEDIA_TYPE)


def add_handlers(app: FastAPI) -> None:
    """Make every error of the application a problem."""

    @app.exception_handler(PgTrickleError)
    async def ours(request: Request, error: PgTrickleError) -> JSONResponse:
        return problem(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = [_sentence(dict(one)) for one in error.errors()[:5]]
        return problem(BadRequest("the request is not valid", detail="; ".join(wrong), hint=_SEE))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        allowed = {"Allow": error.headers["Allow"]} if error.headers and "Allow" in error.headers else None
        return problem(_of_status(error.status_code, request), allowed)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return problem(unexpected_error(request.method, request.url.path, error))


def unexpected_error(method: str, path: str, error: BaseException) -> PgTrickleError:
    """What a client sees of an unexpected error. The log has its place in the code."""
    # as a literal: a path may have line breaks
    LOG.error("%s %r failed", method, path, exc_info=error)
    return PgTrickleError(
        "the server failed with an error that it did not expect", hint="the log of the sidecar says more"
    )


_SEE: Final = "/api/v1/openapi.json describes the fields of each request"


def _of_status(status: int, request: Request) -> PgTrickleError:
    path = request.url.path
    if status == 405:
        return WrongMethod(f"{path} has no method {request.method}", hint=_SEE)
    if status == 404:
        return UnknownAddress(f"there is nothing at {path}", hint="/api/v1/openapi.json lists all paths")
    if status == 413:
        return RequestTooLarge("the body is too large", hint="send less")
    return BadRequest("the request is not valid", hint=_SEE)


def _sentence(wrong: dict[str, Any]) -> str:
    """What is wrong with one field; its value is not repeated, because it may be secret."""
    place = ".".join(str(part) for part in wrong["loc"] if part not in ("body", "query", "path"))
    return f"{place}: {wrong['msg']}" if place else str(wrong["msg"])
