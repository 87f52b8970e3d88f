"""Sidecars, caches, checks, alerts and sessions, as the API returns them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from pgtrickle.interfaces.http.models.base import Model


class Sidecar(Model):
    """A sidecar as of its last report."""

    sidecar_id: str
    host: str
    process: int
    version: str
    started_at: datetime
    seen_at: datetime
    is_alive: bool
    workers: int
    busy: int
    queued: int
    behind: int | None
    tick_milliseconds: float | None
    slowest_tick_milliseconds: float | None
    refreshes: int
    failures: int
    vitals: dict[str, Any]
    is_this: bool


class FleetDatabase(Model):
    """A database that the sidecar serves, and how it is doing."""

    name: str
    path: str = Field(description="Where its page and its API are, relative to the list.")
    state: Literal["starting", "serving", "resting", "disabled", "unreachable", "refused"]
    error: str | None = Field(description="Why it is not served. Only with the token.")
    stream_tables: int | None
    behind: int | None = Field(description="Stream tables that do not show their newest changes yet.")
    statuses: dict[str, int] = Field(description="How many stream tables have each status.")
    busy: int
    queued: int
    quota: int


class CachedQueries(Model):
    """The compiled queries in the catalog for one version of the code."""

    code_version: str
    entries: int
    bytes: int
    oldest: datetime
    newest: datetime
    generation: int


class HealthCheck(Model):
    """One check of the installation and what it found."""

    name: str
    severity: Literal["OK", "WARN", "ERROR"]
    detail: str


class Finding(Model):
    """The result of one check of the doctor."""

    check: str
    severity: Literal["OK", "WARN", "ERROR", "UNCHECKED"]
    message: str
    remedy: str | None


class Alert(Model):
    """An alert that the database keeps. The reason of a refresh needs the token: it may quote data."""

    alert_id: str
    at: datetime
    event: str
    stream_table: str | None
    details: dict[str, Any]


class SessionState(Model):
    """Whether this browser is signed in, and what the server asks for."""

    signed_in: bool
    token_required_for_reads: bool
    has_token: bool = Field(description="Always true: a server without a configured token makes one.")


class Readiness(Model):
    """Whether the sidecar can serve, and if not, why."""

    ready: bool
    checks: dict[str, str]
