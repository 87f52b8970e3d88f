"""Options and arguments that several commands share, made from the tables of settings and options."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from typer import Argument, Option

from pgtrickle.commands.define import Options
from pgtrickle.model import settings
from pgtrickle.model.options import BY_NAME
from pgtrickle.model.settings import Pooling, Setting, SparkPath


def setting_option(setting: Setting[Any]) -> Any:
    """The command-line option of a setting."""
    return Option(
        setting.option,
        envvar=setting.variable,
        show_envvar=False,
        show_default=setting.shown_default or True,
        help=f"{setting.help} Environment: {setting.variable}.",
        min=setting.least,
        max=setting.most,
    )


def table_option(name: str) -> Any:
    """The command-line option for an option of a stream table."""
    option = BY_NAME[name]
    short = {"schedule": ("-s",), "refresh_mode": ("-m",)}.get(name, ())
    return Option(option.cli_flag, *short, show_default=False, help=option.help)


def given_options(**options: str | bool | None) -> Options:
    """The options that were given. The others keep their value, or get their default."""
    return {name: value for name, value in options.items() if value is not None}


Dsn: TypeAlias = Annotated[str, setting_option(settings.DSN)]
ListenDsn: TypeAlias = Annotated[str | None, setting_option(settings.LISTEN_DSN)]
PoolerOption: TypeAlias = Annotated[Pooling, setting_option(settings.POOLER)]
MaxConnections: TypeAlias = Annotated[int, setting_option(settings.MAX_CONNECTIONS)]
Master: TypeAlias = Annotated[str, setting_option(settings.SPARK_MASTER)]
PathOption: TypeAlias = Annotated[SparkPath, setting_option(settings.PATH)]
MemoryLimit: TypeAlias = Annotated[str | None, setting_option(settings.MEMORY_LIMIT)]
Workers: TypeAlias = Annotated[int, setting_option(settings.WORKER_POOL_SIZE)]
MaxErrors: TypeAlias = Annotated[int, setting_option(settings.MAX_CONSECUTIVE_ERRORS)]
RefreshTimeout: TypeAlias = Annotated[float, setting_option(settings.REFRESH_TIMEOUT)]
TempFileLimit: TypeAlias = Annotated[str, setting_option(settings.TEMP_FILE_LIMIT)]
StopTimeout: TypeAlias = Annotated[float, setting_option(settings.STOP_TIMEOUT)]
CacheEntries: TypeAlias = Annotated[int, setting_option(settings.TEMPLATE_CACHE_MAX_ENTRIES)]

Schedule: TypeAlias = Annotated[str | None, table_option("schedule")]
Mode: TypeAlias = Annotated[str | None, table_option("refresh_mode")]
Initialize: TypeAlias = Annotated[bool | None, table_option("initialize")]
DiamondConsistency: TypeAlias = Annotated[str | None, table_option("diamond_consistency")]
DiamondSchedulePolicy: TypeAlias = Annotated[str | None, table_option("diamond_schedule_policy")]
CdcMode: TypeAlias = Annotated[str | None, table_option("cdc_mode")]
AppendOnly: TypeAlias = Annotated[bool | None, table_option("append_only")]
PoolerCompatibility: TypeAlias = Annotated[bool | None, table_option("pooler_compatibility_mode")]
Tier: TypeAlias = Annotated[str | None, table_option("tier")]
TableTimeout: TypeAlias = Annotated[str | None, table_option("refresh_timeout")]
OnDivergence: TypeAlias = Annotated[str | None, table_option("on_divergence")]
NewStatus: TypeAlias = Annotated[str | None, table_option("status")]

Json: TypeAlias = Annotated[bool, Option("--json", help="Print JSON, for programs.")]
Name: TypeAlias = Annotated[
    str,
    Argument(
        show_default=False,
        help="The stream table, written as in SQL: sales, shop.sales, '\"Sales 2025\"'.",
    ),
]
OneOrAll: TypeAlias = Annotated[
    str | None, Argument(show_default=False, help="One stream table; without it, all.")
]
Query: TypeAlias = Annotated[
    str | None, Option("--query", "-q", show_default=False, help="The query it follows: one SELECT.")
]
QueryFile: TypeAlias = Annotated[
    str | None,
    Option("--query-file", "-f", show_default=False, help="A file with the query; - reads standard input."),
]
