"""Builds the engine of a process from its settings. This is the only place that does."""

from __future__ import annotations

import os
from collections.abc import Callable

from pgtrickle.capture.attached.broker import Broker
from pgtrickle.capture.attached.places import Resolve
from pgtrickle.changes.memory import Memory
from pgtrickle.commands.databases import configured_addresses
from pgtrickle.commands.tracing import open_tracer
from pgtrickle.model.settings import Settings
from pgtrickle.model.tracing import Tracer
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.plan.limits import QueryLimits
from pgtrickle.refresh.engine import Engine


def build_engine(
    settings: Settings,
    start_spark: Callable[[], Spark] | SparkSupply,
    memory: Memory | None = None,
    tracer: Tracer | None = None,
    resolve: Resolve | None = None,
    broker: Broker | None = None,
) -> Engine:
    """Build an engine. It calls `start_spark` when it first needs Spark and when Spark has died.

    Engines of several databases are given the same supply of Spark, memory and tracer. `resolve` finds the
    address of an attached database; without it, they are looked for in the configuration file.
    """
    return Engine(
        settings.dsn,
        start_spark,
        settings.path,
        task_dsn=settings.task_dsn,
        max_connections=settings.max_connections,
        pooling=settings.pooler,
        template_cache_max_entries=settings.template_cache_max_entries,
        memory_limit=settings.memory_limit,
        shared_memory=memory,
        refresh_timeout=settings.refresh_timeout or None,
        temp_file_limit=None if settings.temp_file_limit.lower() == "none" else settings.temp_file_limit,
        cache_directory=settings.cache_directory(os.environ),
        tracer=tracer or open_tracer(os.environ, is_wanted=settings.traces),
        broker=broker,
        resolve=resolve or configured_addresses(settings, os.environ),
        query_limits=QueryLimits(
            settings.max_text_bytes,
            settings.max_depth,
            settings.max_relations,
            settings.max_subqueries,
            settings.max_grouping_sets,
        ),
    )
