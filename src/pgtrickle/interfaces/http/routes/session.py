"""Signing in: a browser exchanges the token, or the code of a login link, for a cookie."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.access import Gate
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import caller_of
from pgtrickle.interfaces.http.sessions import SESSION_SECONDS


class Login(models.Model):
    """The token, or the code of a login link."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: str | None = Field(default=None, max_length=1024, repr=False)
    code: str | None = Field(default=None, max_length=1024, repr=False)


def router(gate: Gate) -> APIRouter:
    """The routes."""
    routes = api_router("session")

    @routes.get("/session", response_model=models.SessionState)
    async def session(request: Request) -> Any:
        """Whether this client is signed in, and what the server asks for."""
        caller = caller_of(request)
        return {
            "signed_in": caller.has_token,
            "token_required_for_reads": not gate.is_loopback,
            "has_token": True,
        }

    @routes.post("/session", response_model=models.Done)
    async def sign_in(given: Login, request: Request, response: Response) -> Any:
        """Sign in: set a cookie that stands for the token. Only the page of this server can do that."""
        gate.check_login(given.token, given.code, request)
        response.set_cookie(
            gate.cookie,
            gate.sessions.begin(),
            max_age=SESSION_SECONDS,
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.headers.get("origin", "").startswith("https://"),
        )
        return {"ok": True}

    @routes.delete("/session", response_model=models.Done)
    async def sign_out(request: Request, response: Response) -> Any:
        """Sign out: end the session of this browser."""
        caller = caller_of(request)
        if caller.session is not None:
            gate.sessions.end(caller.session)
        response.delete_cookie(gate.cookie, path="/", httponly=True, samesite="strict")
        return {"ok": True}

    return routes
