"""Stream tables, their refreshes, rows and sources, as the API returns them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from pgtrickle.interfaces.http.models.base import Cells, Model, State


class LastRefresh(Model):
    """The last refresh that changed something; `refresh_id` is null until it was read from the catalog."""

    refresh_id: int | None
    at: datetime
    action: str
    rows_inserted: int
    rows_deleted: int
    ms: float


class TableFields(Model):
    """What every view of a stream table has."""

    id: int
    name: str = Field(description='The name as SQL: public.sales, shop."Big Sales".')
    schema_: str = Field(alias="schema")
    table: str
    owner: str
    state: State
    status: str
    schedule: str
    schedule_seconds: float | None
    tier: str
    refresh_mode: str
    effective_mode: str | None
    reason: str | None = Field(description="Why it is refreshed in full although the mode is AUTO.")
    staleness_seconds: float | None
    data_timestamp: datetime | None
    pending_changes: int | None
    is_populated: bool
    waits: str | None = Field(description="What its refreshes wait for.")
    consecutive_errors: int
    failing_since: datetime | None
    retry_at: datetime | None
    error: str | None = Field(description="The last error. Only with the token.")
    last: LastRefresh | None
    recent: list[tuple[float, str]] = Field(
        description="Milliseconds and first letter of the last refreshes, oldest first; X is a failure."
    )
    version: int


class TableRow(TableFields):
    """A stream table."""

    sources: list[str]


class Counts(Model):
    """How many stream tables are in each state."""

    total: int
    fresh: int
    late: int
    failing: int
    suspended: int
    initializing: int
    waiting: int


class Overview(Model):
    """All stream tables, those that need attention first."""

    at: datetime
    database: str
    version: str
    is_served: bool
    enabled: bool = Field(description="Whether refreshes may start: false while the database is drained.")
    counts: Counts
    sentence: str
    tables: list[TableRow]


class Column(Model):
    """A column of a result."""

    name: str
    type: str


class SourceRow(Model):
    """A relation or function that a stream table reads."""

    name: str
    kind: str
    cdc_mode: str | None
    columns_used: list[str] | None


class OperatorLine(Model):
    """One operator of a plan; `kind` is the kind of its delta rule."""

    depth: int
    text: str
    kind: str | None


class TableDetail(TableFields):
    """A stream table with its definition and its plan."""

    query: str
    defined_by: str
    options: dict[str, Any]
    columns: list[Column]
    sources: list[SourceRow]
    readers: list[str]
    downgrade_reason: str | None
    last_error: str | None = Field(description="The last error. Only with the token.")
    hint: str | None
    missing_indexes: list[str]
    plan: str | None
    plan_error: str | None
    operators: list[OperatorLine]
    repairs: int
    last_repair_at: datetime | None


class Refresh(Model):
    """One refresh. `reason` and `error` come only with the token, because they may quote data."""

    refresh_id: int | None
    name: str
    action: str | None
    status: str
    at: datetime
    ms: float | None
    read_ms: float | None
    compute_ms: float | None
    apply_ms: float | None
    rows_inserted: int
    rows_deleted: int
    reason: str | None
    error: str | None
    initiated_by: str | None


class RowSet(Model):
    """Rows as PostgreSQL prints them."""

    columns: list[Column]
    rows: list[Cells]
    is_truncated: bool


class Node(Model):
    """A source, a stream table, or a view over stream tables in the graph."""

    id: str
    name: str
    kind: Literal["source", "stream_table", "reader"]
    state: State | None
    schema_: str = Field(alias="schema")
    relation_kind: str


class Edge(Model):
    """A stream table or view `to` that reads `from`."""

    from_: str = Field(alias="from")
    to: str


class Graph(Model):
    """What reads what."""

    nodes: list[Node]
    edges: list[Edge]


class SourceReader(Model):
    """A stream table that reads a source."""

    table: str
    pending_rows: int
    staleness_seconds: float | None


class CapturedSource(Model):
    """A source, and how its changes are captured."""

    source: str
    kind: str
    cdc_mode: str
    pending_rows: int
    buffer_bytes: int
    readers: list[SourceReader]
    triggers_ok: bool | None
    gated: bool
