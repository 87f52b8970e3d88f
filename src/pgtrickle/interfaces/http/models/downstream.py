"""Who receives the changes of stream tables."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pgtrickle.interfaces.http.models.base import Model


class Publication(Model):
    """The publication of a stream table."""

    name: str
    publication: str
    notices: list[str] = Field(description="What keeps subscribers from using it.")


class PublicationStatus(Model):
    """A publication that a stream table belongs to, and how far one of its subscribers is."""

    stream_table: str
    publication: str | None
    slot: str | None = Field(description="The replication slot; null if no subscriber is known.")
    confirmed_flush_lsn: str | None
    lag_bytes: int | None
    active: bool | None
    slot_state: str | None = Field(description="active, inactive, lost or missing.")
    is_late: bool
    since: datetime | None = Field(description="Since when it is late.")


class Subscription(Model):
    """A channel that refreshes of a stream table notify."""

    stream_table: str
    channel: str
    subscribed_by: str
    subscribed_at: datetime
    is_notified: bool


class Notices(Model):
    """It is done; what else to know."""

    notices: list[str]
