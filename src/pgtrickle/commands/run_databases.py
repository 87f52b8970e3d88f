"""Runs a sidecar for several databases."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pgtrickle.capture.attached.broker import Broker
from pgtrickle.commands.databases import configured_addresses, unique_name
from pgtrickle.commands.engine import build_engine
from pgtrickle.commands.tracing import open_tracer
from pgtrickle.model.databases import Databases, ServedDatabase
from pgtrickle.model.settings import Settings
from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.postgres.addresses import with_parts
from pgtrickle.refresh.engine import Engine, process_memory
from pgtrickle.scheduler.service.budgeting import Budgeting
from pgtrickle.scheduler.service.discovery import Discovery
from pgtrickle.scheduler.service.fleet import Fleet, OnEvent
from pgtrickle.scheduler.service.loop import Loop
from pgtrickle.scheduler.service.threshold_alerts import alert_limits
from pgtrickle.scheduler.service.unit_refresh import spark_event
from pgtrickle.scheduler.service.worker_shares import WorkerShare, WorkerShares

__all__ = ["Fleet", "build_fleet", "run_databases"]

POLL_SECONDS: Final = 0.2
UNLIMITED: Final = 1000
"""The number of workers without a limit."""


def build_fleet(settings: Settings, supply: SparkSupply, on_event: OnEvent) -> Fleet:
    """A fleet without any database. Its databases share Spark, the workers and the memory for rows."""
    memory = process_memory(supply, lambda: settings.memory_limit)
    broker = Broker(settings.broker_capacity) if settings.enable_refresh_broker else None
    tracer = open_tracer(os.environ, is_wanted=settings.traces)
    configured = configured_addresses(settings, os.environ)

    def engine_of(database: ServedDatabase) -> Engine:
        own = replace(
            settings,
            dsn=database.dsn,
            pooler=database.pooler or settings.pooler,
            max_connections=database.max_connections or settings.max_connections,
        )
        engine = build_engine(own, supply, memory, tracer, resolve, broker)
        engine.attached.served = addresses
        engine.attached.origins = database.origins
        return engine

    def addresses() -> dict[str, str]:
        return {member.database.name: member.database.dsn for member in fleet.members()}

    def resolve(reference: str) -> str | None:
        """The address of a database that this process serves, or that its configuration has, by its name."""
        return addresses().get(reference) or configured(reference)

    def loop_of(engine: Engine, tell: OnEvent, share: WorkerShare, database: ServedDatabase) -> Loop:
        return Loop(
            engine,
            tell,
            settings.max_consecutive_errors,
            settings.worker_pool_size,
            database.listen_dsn,
            alert_limits(settings),
            share,
            settings.idle_after or None,
            budget=budget,
        )

    budget = Budgeting.of(supply, settings.cpu_share)
    shares = WorkerShares(settings.worker_pool_size or UNLIMITED)

    def close() -> None:
        tracer.close()
        if broker is not None:
            broker.close()

    fleet = Fleet(engine_of, loop_of, shares, on_event, settings.max_databases, close, broker)
    return fleet


def run_databases(
    fleet: Fleet,
    databases: Databases,
    supply: SparkSupply,
    stop: threading.Event,
    on_event: OnEvent,
    settings: Settings,
    poll: Callable[[], None] = lambda: None,
) -> bool:
    """Serve the databases until `stop` is set; returns whether all refreshes have ended in time.

    `poll` is called from time to time; what it raises ends the sidecar.
    """
    # all databases notice what happens to Spark; the process tells it once
    supply.listen(lambda change: on_event(spark_event(change)))
    supply.begin()
    discoveries = []
    for database in databases.databases:
        fleet.add(database)
    for server in databases.servers:
        discovery = Discovery(server, fleet, _namer(fleet, server.dsn), on_event)
        thread = threading.Thread(target=discovery.serve, args=(stop,), name="discovery", daemon=True)
        thread.start()
        discoveries.append(thread)
    try:
        while not stop.wait(POLL_SECONDS):
            poll()
    finally:
        stop.set()
        is_done = fleet.close(settings.stop_timeout)
        for thread in discoveries:
            thread.join(POLL_SECONDS)
    return is_done


def _namer(fleet: Fleet, dsn: str) -> Callable[[str], str]:
    def name_of(database: str) -> str:
        taken = {member.database.name for member in fleet.members()}
        return unique_name(with_parts(dsn, dbname=database), taken)

    return name_of
