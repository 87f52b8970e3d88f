"""The methods of `Trickle` that define stream tables: create, alter, drop, resume."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from pgtrickle.commands import define
from pgtrickle.commands.adopt import adopt, adoption_plan
from pgtrickle.commands.bulk import CreatedTable, TableDefinition, bulk_create
from pgtrickle.commands.status import table_status
from pgtrickle.model.records import Records

if TYPE_CHECKING:
    from pgtrickle.commands.adopt import AdoptionPlan
    from pgtrickle.commands.status import StreamTableStatus

LOG: Final = logging.getLogger("pgtrickle")


class CreateOptions(TypedDict, total=False):
    """The options of a new stream table, with the meaning and the defaults that `create` gives them."""

    schedule: str | None
    refresh_mode: str
    initialize: bool
    diamond_consistency: str | None
    diamond_schedule_policy: str | None
    cdc_mode: str | None
    append_only: bool
    pooler_compatibility_mode: bool
    tier: str | None
    refresh_timeout: str | None
    on_divergence: str | None
    keep_changes: str | None
    auxiliary_results: str | None


class Definitions:
    """Everything that changes the definition of a stream table."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def create(
        self,
        name: str,
        query: str,
        schedule: str | None = "calculated",
        refresh_mode: str = "AUTO",
        *,
        initialize: bool = True,
        diamond_consistency: str | None = None,
        diamond_schedule_policy: str | None = None,
        cdc_mode: str | None = None,
        append_only: bool = False,
        pooler_compatibility_mode: bool = False,
        tier: str | None = None,
        refresh_timeout: str | None = None,
        on_divergence: str | None = None,
        keep_changes: str | None = None,
        auxiliary_results: str | None = None,
    ) -> StreamTableStatus:
        """Create a stream table. It is empty until its first refresh.

        Write names as in SQL: `sales`, `shop.sales`, `'"Sales 2025"'`. `schedule` is an interval (`"500ms"`,
        `"1s"`, `"1h30m"`), a cron expression in UTC (`"*/5 * * * *"`), `"calculated"` (refresh whenever a
        source has changed), or None for manual refreshes only. `refresh_mode` is `"AUTO"`, `"DIFFERENTIAL"`
        (an error if the query cannot be maintained incrementally) or `"FULL"`. A refresh that takes longer
        than `refresh_timeout` (`"30s"`, `"5min"`, `"none"`) is canceled. `on_divergence` is what happens to
        a stream table that does not hold the correct rows: `"repair"` (load it again) or `"stop"`.
        `keep_changes` (`"1h"`, `"7d 50000 rows"`) keeps what refreshes insert and delete, for `changes`.
        `auxiliary_results` (`"auto"`, `"always"`, `"never"`) is whether inner results of the query are kept.
        docs/CONFIGURATION.md describes every option.

        >>> query = "select region, sum(amount) as total from orders group by region"
        >>> sales = trickle.create("sales", query, schedule="1s")
        >>> sales.status
        <Status.INITIALIZING: 'INITIALIZING'>
        """
        options: CreateOptions = {
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "initialize": initialize,
            "diamond_consistency": diamond_consistency,
            "diamond_schedule_policy": diamond_schedule_policy,
            "cdc_mode": cdc_mode,
            "append_only": append_only,
            "pooler_compatibility_mode": pooler_compatibility_mode,
            "tier": tier,
            "refresh_timeout": refresh_timeout,
            "on_divergence": on_divergence,
            "keep_changes": keep_changes,
            "auxiliary_results": auxiliary_results,
        }
        return self._create(define.create, name, query, options)

    def create_or_replace(self, name: str, query: str, **options: Unpack[CreateOptions]) -> StreamTableStatus:
        """Create a stream table, or redefine the one of that name. The options are those of `create`.

        A query with other columns is evaluated at once; the table then gets its columns and rows. It keeps
        its grants, comments, indexes and views. It is refused if something reads a column that goes away.

        >>> query = "select region, sum(amount) as total, count(*) as orders from orders group by region"
        >>> sales = trickle.create_or_replace("sales", query, schedule="1s")
        """
        return self._create(define.create_or_replace, name, query, options)

    def create_if_not_exists(
        self, name: str, query: str, **options: Unpack[CreateOptions]
    ) -> StreamTableStatus:
        """Create a stream table unless one of that name exists, which then stays unchanged.

        The options are those of `create`.

        >>> count = trickle.create_if_not_exists("order_count", "select count(*) as orders from orders")
        """
        return self._create(define.create_if_not_exists, name, query, options)

    def bulk_create(self, definitions: Sequence[TableDefinition]) -> Records[CreatedTable]:
        """Create several stream tables, or none of them if one cannot be created.

        Each definition has a `name` and a `query`, and may have any option of `create`. They may read one
        another, in any order.

        >>> regions = {"name": "regions", "query": "select distinct region from orders"}
        >>> counted = {"name": "region_count", "query": "select count(*) as regions from regions"}
        >>> [table.name for table in trickle.bulk_create([counted, regions])]
        ['public.region_count', 'public.regions']
        >>> dropped = trickle.drop("regions", cascade=True)
        """
        return Records(CreatedTable, bulk_create(self._dsn, definitions))

    def alter(
        self,
        name: str,
        *,
        query: str | None = None,
        schedule: str | None = None,
        refresh_mode: str | None = None,
        status: str | None = None,
        cdc_mode: str | None = None,
        append_only: bool | None = None,
        pooler_compatibility_mode: bool | None = None,
        tier: str | None = None,
        diamond_consistency: str | None = None,
        diamond_schedule_policy: str | None = None,
        refresh_timeout: str | None = None,
        on_divergence: str | None = None,
        keep_changes: str | None = None,
        auxiliary_results: str | None = None,
    ) -> StreamTableStatus:
        """Change the given options; None leaves a value unchanged. `schedule="manual"` removes the schedule.

        A `query` may have other columns, as in `create_or_replace`.

        >>> trickle.alter("sales", schedule="5m").schedule
        '5m'
        """
        options: define.Options = {
            "query": query,
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "status": status,
            "cdc_mode": cdc_mode,
            "append_only": append_only,
            "pooler_compatibility_mode": pooler_compatibility_mode,
            "tier": tier,
            "diamond_consistency": diamond_consistency,
            "diamond_schedule_policy": diamond_schedule_policy,
            "refresh_timeout": refresh_timeout,
            "on_divergence": on_divergence,
            "keep_changes": keep_changes,
            "auxiliary_results": auxiliary_results,
        }
        _log_notices(define.alter(self._dsn, name, options))
        return table_status(self._dsn, name)

    def adopt(
        self,
        name: str,
        schedule: str | None = "calculated",
        refresh_mode: str = "AUTO",
        *,
        diamond_consistency: str | None = None,
        diamond_schedule_policy: str | None = None,
        cdc_mode: str | None = None,
        append_only: bool = False,
        pooler_compatibility_mode: bool = False,
        tier: str | None = None,
        refresh_timeout: str | None = None,
        on_divergence: str | None = None,
        keep_changes: str | None = None,
        auxiliary_results: str | None = None,
    ) -> StreamTableStatus:
        """Turn a materialized view into a stream table. The options are those of `create`.

        It keeps its name, rows, indexes, owner, grants, comments and dependent views. The first refresh
        brings the rows up to date. `adoption_plan` says before what it would mean.

        >>> trickle.adopt("by_region", schedule="1s").status
        <Status.INITIALIZING: 'INITIALIZING'>
        >>> trickle.drop("by_region")
        ['public.by_region']
        """
        options: define.Options = {
            "schedule": schedule,
            "refresh_mode": refresh_mode,
            "diamond_consistency": diamond_consistency,
            "diamond_schedule_policy": diamond_schedule_policy,
            "cdc_mode": cdc_mode,
            "append_only": append_only,
            "pooler_compatibility_mode": pooler_compatibility_mode,
            "tier": tier,
            "refresh_timeout": refresh_timeout,
            "on_divergence": on_divergence,
            "keep_changes": keep_changes,
            "auxiliary_results": auxiliary_results,
        }
        _log_notices(adopt(self._dsn, name, options))
        return table_status(self._dsn, name)

    def adoption_plan(self, name: str, refresh_mode: str = "AUTO") -> AdoptionPlan:
        """Say what `adopt` would do: the mode and why, what a change reads, what is kept and missing.

        Raises if the materialized view cannot be adopted. Nothing is changed. Needs no Spark.

        >>> trickle.adoption_plan("by_region").effective_mode
        <RefreshMode.DIFFERENTIAL: 'DIFFERENTIAL'>
        """
        return adoption_plan(self._dsn, name, refresh_mode)

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a stream table; with `cascade`, also everything that reads it.

        Return the names of the stream tables that were dropped.

        >>> trickle.drop("order_count")
        ['public.order_count']
        """
        return define.drop(self._dsn, name, cascade=cascade)

    def resume(self, name: str) -> StreamTableStatus:
        """Resume a suspended or failed stream table.

        >>> trickle.alter("sales", status="SUSPENDED").status
        <Status.SUSPENDED: 'SUSPENDED'>
        >>> sales = trickle.resume("sales")
        """
        define.resume(self._dsn, name)
        return table_status(self._dsn, name)

    # the names of the SQL functions
    create_stream_table = create
    create_or_replace_stream_table = create_or_replace
    create_stream_table_if_not_exists = create_if_not_exists
    alter_stream_table = alter
    adopt_materialized_view = adopt
    drop_stream_table = drop
    resume_stream_table = resume

    def _create(
        self,
        command: Callable[[str, str, str, define.Options], list[str] | bool],
        name: str,
        query: str,
        options: CreateOptions,
    ) -> StreamTableStatus:
        notices = command(self._dsn, name, query, dict(options))  # type: ignore[arg-type]
        if not isinstance(notices, bool):
            _log_notices(notices)
        return table_status(self._dsn, name)


def _log_notices(notices: Sequence[str]) -> None:
    """Log what PostgreSQL remarked, for example that a source is locked by another session."""
    for notice in notices:
        LOG.warning("%s", notice)
