"""Who receives the changes of stream tables: publications, their subscribers, and channels."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from pgtrickle.commands import publications, subscriptions
from pgtrickle.interfaces.http import models, requests
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context
from pgtrickle.interfaces.http.path_names import SqlName


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = api_router("downstream")
    works, reads, dsn = context.works, context.reads, context.dsn

    @routes.get("/publications", response_model=list[models.PublicationStatus])
    async def all_publications() -> Any:
        """The publications that stream tables belong to, and how far each known subscriber is."""
        return [asdict(one) for one in await reads.run(publications.publications, dsn)]

    @routes.get("/subscriptions", response_model=list[models.Subscription])
    async def all_subscriptions() -> Any:
        """The channels that refreshes notify, of the stream tables that the role of the server may read."""
        return [asdict(one) for one in await reads.run(subscriptions.subscriptions, dsn)]

    @routes.post("/tables/{name}/publish", response_model=models.Publication)
    async def publish(name: SqlName, given: requests.Publish | None = None) -> Any:
        """Publish a stream table by logical replication."""
        wanted = (given or requests.Publish()).publication
        return asdict(await works.run(publications.publish, dsn, name, wanted))

    @routes.post("/tables/{name}/unpublish", response_model=models.Notices)
    async def unpublish(name: SqlName) -> Any:
        """Drop the publication that `publish` has created."""
        return {"notices": await works.run(publications.unpublish, dsn, name)}

    @routes.post("/tables/{name}/track", response_model=models.Done)
    async def register(name: SqlName, given: requests.Subscriber) -> Any:
        """Track how far a replication slot that reads a stream table is."""
        await works.run(publications.register_subscriber, dsn, name, given.slot)
        return {"ok": True}

    @routes.post("/tables/{name}/untrack", response_model=models.Done)
    async def unregister(name: SqlName, given: requests.Subscriber) -> Any:
        """No longer track a replication slot. The slot itself is unchanged."""
        await works.run(publications.unregister_subscriber, dsn, name, given.slot)
        return {"ok": True}

    @routes.post("/tables/{name}/subscribe", response_model=models.Done)
    async def subscribe(name: SqlName, given: requests.Channel) -> Any:
        """Have every refresh that changes a stream table notify a channel."""
        await works.run(subscriptions.subscribe, dsn, name, given.channel)
        return {"ok": True}

    @routes.post("/tables/{name}/unsubscribe", response_model=models.Done)
    async def unsubscribe(name: SqlName, given: requests.Channel) -> Any:
        """No longer notify a channel."""
        await works.run(subscriptions.unsubscribe, dsn, name, given.channel)
        return {"ok": True}

    return routes
