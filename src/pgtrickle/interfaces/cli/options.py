"""Options and arguments that several commands share, made from the tables of settings and options."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Final, TypeAlias

from typer import Argument, Option

from pgtrickle.commands.define import Options
from pgtrickle.interfaces.cli import completion
from pgtrickle.model import http_settings, settings
from pgtrickle.model.options import BY_NAME, Form
from pgtrickle.model.setting import Setting
from pgtrickle.model.settings import LogFormat, LogLevel, Pooling, SparkPath

_METAVARS: Final = {
    "dsn": "DSN",
    "listen_dsn": "DSN",
    "config": "FILE",
    "spark_master": "URL",
    "task_dsn": "PARTS",
    "memory_limit": "SIZE",
    "temp_file_limit": "SIZE",
    "http": "ADDRESS",
    "http_token_file": "FILE",
    "http_host": "NAMES",
    "http_dsn": "DSN",
}


def setting_option(setting: Setting[Any]) -> Any:
    """The command-line option of a setting."""
    return Option(
        setting.option,
        envvar=setting.variable,
        show_default=setting.shown_default or True,
        metavar=_METAVARS.get(setting.name) or _metavar(setting.default),
        help=setting.help,
        min=setting.least,
        max=setting.most,
    )


def table_option(name: str) -> Any:
    """The command-line option for an option of a new stream table. It shows the default."""
    default = BY_NAME[name].default
    shown = BY_NAME[name].shown_default if default is None else _shown(BY_NAME[name].cli_flag, default)
    return _table_option(name, shown or False)


def changed_option(name: str) -> Any:
    """The same for an existing stream table, where an option that is not given stays as it is."""
    return _table_option(name, False)


def _table_option(name: str, shown_default: str | bool) -> Any:
    option = BY_NAME[name]
    return Option(
        option.cli_flag,
        *{"schedule": ("-s",), "refresh_mode": ("-m",)}.get(name, ()),
        show_default=shown_default,
        metavar="|".join(option.choices) or ("" if option.form is Form.BOOLEAN else name.upper()),
        autocompletion=completion.choices(option.choices) if option.choices else None,
        help=option.help,
    )


def _shown(flag: str, default: str | bool) -> str:
    on, _, off = flag.partition("/")
    return (on if default else off).removeprefix("--") if isinstance(default, bool) else default


def _metavar(default: object) -> str:
    """What stands for the value in the help text."""
    match default:
        case Enum():
            return "|".join(member.value for member in type(default))
        case bool():
            return ""
        case int():
            return "N"
        case float():
            return "SECONDS"
        case _:
            return "TEXT"


def given_options(**options: str | bool | None) -> Options:
    """The options that were given. The others keep their value, or get their default."""
    return {name: value for name, value in options.items() if value is not None}


Dsn: TypeAlias = Annotated[str, setting_option(settings.DSN)]
Dsns: TypeAlias = Annotated[
    list[str] | None,
    Option(
        settings.DSN.option,
        show_default=f"{settings.DSN.variable}, else libpq's variables",
        metavar="DSN",
        help="The address of a database to serve. Give it several times for several databases.",
    ),
]
ConfigFile: TypeAlias = Annotated[str | None, setting_option(settings.CONFIG)]
Discover: TypeAlias = Annotated[bool, setting_option(settings.DISCOVER)]
EnableRefreshBroker: TypeAlias = Annotated[bool, setting_option(settings.ENABLE_REFRESH_BROKER)]
MaxDatabases: TypeAlias = Annotated[int, setting_option(settings.MAX_DATABASES)]
IdleAfter: TypeAlias = Annotated[float, setting_option(settings.IDLE_AFTER)]
ListenDsn: TypeAlias = Annotated[str | None, setting_option(settings.LISTEN_DSN)]
PoolerOption: TypeAlias = Annotated[Pooling, setting_option(settings.POOLER)]
MaxConnections: TypeAlias = Annotated[int, setting_option(settings.MAX_CONNECTIONS)]
Master: TypeAlias = Annotated[str, setting_option(settings.SPARK_MASTER)]
TaskDsn: TypeAlias = Annotated[str | None, setting_option(settings.TASK_DSN)]
PathOption: TypeAlias = Annotated[SparkPath, setting_option(settings.PATH)]
MemoryLimit: TypeAlias = Annotated[str | None, setting_option(settings.MEMORY_LIMIT)]
Workers: TypeAlias = Annotated[int, setting_option(settings.WORKER_POOL_SIZE)]
CpuShare: TypeAlias = Annotated[float | None, setting_option(settings.CPU_SHARE)]
MaxErrors: TypeAlias = Annotated[int, setting_option(settings.MAX_CONSECUTIVE_ERRORS)]
RefreshTimeout: TypeAlias = Annotated[float, setting_option(settings.REFRESH_TIMEOUT)]
TempFileLimit: TypeAlias = Annotated[str, setting_option(settings.TEMP_FILE_LIMIT)]
StopTimeout: TypeAlias = Annotated[float, setting_option(settings.STOP_TIMEOUT)]
CacheEntries: TypeAlias = Annotated[int, setting_option(settings.TEMPLATE_CACHE_MAX_ENTRIES)]
Http: TypeAlias = Annotated[str | None, setting_option(http_settings.HTTP)]
HttpTokenFile: TypeAlias = Annotated[str | None, setting_option(http_settings.HTTP_TOKEN_FILE)]
HttpHost: TypeAlias = Annotated[str | None, setting_option(http_settings.HTTP_HOST)]
HttpDsn: TypeAlias = Annotated[str | None, setting_option(http_settings.HTTP_DSN)]
LogLevelOption: TypeAlias = Annotated[LogLevel, setting_option(settings.LOG_LEVEL)]
LogFormatOption: TypeAlias = Annotated[LogFormat, setting_option(settings.LOG_FORMAT)]
Traces: TypeAlias = Annotated[bool, setting_option(settings.TRACES)]

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
KeepChanges: TypeAlias = Annotated[str | None, table_option("keep_changes")]
AuxiliaryResults: TypeAlias = Annotated[str | None, table_option("auxiliary_results")]

Json: TypeAlias = Annotated[bool, Option("--json", help="Print the result, or the error, as JSON.")]
Interval: TypeAlias = Annotated[
    float,
    Option("--interval", "-i", min=0.1, metavar="SECONDS", help="How often to poll the database."),
]
Name: TypeAlias = Annotated[
    str,
    Argument(
        show_default=False,
        autocompletion=completion.stream_tables,
        metavar="NAME",
        help="The stream table, written as in SQL: sales, shop.sales, '\"Sales\"'.",
    ),
]
OneOrAll: TypeAlias = Annotated[
    str | None,
    Argument(
        show_default=False,
        autocompletion=completion.stream_tables,
        metavar="NAME",
        help="One stream table. Without it, all stream tables.",
    ),
]
Query: TypeAlias = Annotated[
    str | None, Option("--query", "-q", show_default=False, metavar="SQL", help="The query: one SELECT.")
]
QueryFile: TypeAlias = Annotated[
    str | None,
    Option(
        "--query-file",
        "-f",
        show_default=False,
        metavar="FILE",
        help="A file with the query; - reads standard input.",
    ),
]
