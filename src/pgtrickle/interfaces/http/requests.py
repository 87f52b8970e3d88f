"""The values that the API takes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pgtrickle.interfaces.http.models import Model

Name = Field(min_length=1, max_length=200, description='A name as SQL: sales, shop."Big Sales".')
Query = Field(min_length=1, max_length=900_000, description="One SELECT.")
Owner = Field(
    default=None,
    max_length=63,
    description="The role that shall own it: one that the role of the server is a member of. Only its rights"
    " count. By default, the role of the server.",
)


class Options(Model):
    """The options of a stream table. docs/CONFIGURATION.md describes each of them."""

    schedule: str | None = None
    refresh_mode: str | None = None
    cdc_mode: str | None = None
    append_only: bool | None = None
    pooler_compatibility_mode: bool | None = None
    tier: str | None = None
    diamond_consistency: str | None = None
    diamond_schedule_policy: str | None = None
    refresh_timeout: str | None = None
    on_divergence: str | None = None
    keep_changes: str | None = None
    auxiliary_results: str | None = None

    def given(self, *but: str) -> dict[str, Any]:
        """The options that the request has, without those that are not options."""
        return self.model_dump(exclude_unset=True, exclude_none=True, exclude=set(but))


class CreateTable(Options):
    """A new stream table. Options that are left out have their defaults."""

    name: str = Name
    query: str = Query
    initialize: bool | None = None
    owner: str | None = Owner
    if_not_exists: bool = Field(default=False, description="Leave a stream table of that name as it is.")
    or_replace: bool = Field(default=False, description="Redefine a stream table of that name.")


class NewTable(Options):
    """One of several new stream tables."""

    name: str = Name
    query: str = Query
    initialize: bool | None = None


class BulkCreate(Model):
    """Stream tables that may read one another, in any order. All of them are created, or none."""

    definitions: list[NewTable] = Field(min_length=1, max_length=1000)


class AlterTable(Options):
    """What to change. What is left out stays as it is; the schedule `manual` removes the schedule."""

    query: str | None = Field(default=None, min_length=1, max_length=900_000)
    status: str | None = None


class Adopt(Options):
    """A materialized view to turn into a stream table, with options for it."""

    name: str = Name
    dry_run: bool = False


class Apply(Model):
    """CREATE STREAM TABLE statements, as `export` writes them."""

    definitions: str = Field(max_length=900_000)
    set_name: str | None = Field(
        default=None, max_length=200, description="Drop what this set created and the text no longer has."
    )
    dry_run: bool = False


class ValidateQuery(Model):
    """A query to check."""

    query: str = Query
    name: str | None = Field(default=None, max_length=200, description="The name of the new stream table.")
    refresh_mode: str = "AUTO"
    owner: str | None = Owner
    with_rows: bool = Field(default=True, description="Whether to show some rows of a valid query.")


class Publish(Model):
    """The name of the publication."""

    publication: str | None = Field(
        default=None, max_length=63, description="By default pgt_pub_ and the name of the stream table."
    )


class Subscriber(Model):
    """A subscriber of a published stream table."""

    slot: str = Field(min_length=1, max_length=63, description="Its logical replication slot.")


class Channel(Model):
    """A channel of LISTEN and NOTIFY."""

    channel: str = Field(min_length=1, max_length=63)


class Drain(Model):
    """How long to wait for running refreshes."""

    timeout: int = Field(default=60, ge=0, le=100)


class Verify(Model):
    """How long a comparison may take, in seconds."""

    timeout: float = Field(default=300.0, gt=0, le=3000)
