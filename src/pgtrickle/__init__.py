"""Stream tables for PostgreSQL: query results that follow their sources, computed on Spark.

Start with `pgtrickle.connect`. The reference is docs/PYTHON.md.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pgtrickle.model import errors as _errors

if TYPE_CHECKING:
    from pgtrickle.commands.adopt import AdoptionPlan as AdoptionPlan
    from pgtrickle.commands.advise import Advice as Advice
    from pgtrickle.commands.advise import Candidate as Candidate
    from pgtrickle.commands.alerts import Alert as Alert
    from pgtrickle.commands.attached import AttachedDatabaseStatus as AttachedDatabaseStatus
    from pgtrickle.commands.bulk import CreatedTable as CreatedTable
    from pgtrickle.commands.caches import CachedQueries as CachedQueries
    from pgtrickle.commands.definitions import PlanAction as PlanAction
    from pgtrickle.commands.definitions import PlannedChange as PlannedChange
    from pgtrickle.commands.explain import Explanation as Explanation
    from pgtrickle.commands.list_databases import DatabaseTables as DatabaseTables
    from pgtrickle.commands.monitoring import HealthCheck as HealthCheck
    from pgtrickle.commands.publications import Publication as Publication
    from pgtrickle.commands.publications import PublicationStatus as PublicationStatus
    from pgtrickle.commands.run import RefreshEvent as RefreshEvent
    from pgtrickle.commands.status import PastRefresh as PastRefresh
    from pgtrickle.commands.status import Sidecar as Sidecar
    from pgtrickle.commands.status import StreamTableStatus as StreamTableStatus
    from pgtrickle.commands.subscriptions import Subscription as Subscription
    from pgtrickle.commands.top import Activity as Activity
    from pgtrickle.commands.top import TableActivity as TableActivity
    from pgtrickle.commands.validate import Validation as Validation
    from pgtrickle.commands.verify import VerifiedTable as VerifiedTable
    from pgtrickle.interfaces.background import BackgroundRun as BackgroundRun
    from pgtrickle.interfaces.connect import connect as connect
    from pgtrickle.interfaces.ddl.execute import StatementResult as StatementResult
    from pgtrickle.interfaces.python import Trickle as Trickle
    from pgtrickle.model.changes import Change as Change
    from pgtrickle.model.changes import ChangeKind as ChangeKind
    from pgtrickle.model.changes import Preview as Preview
    from pgtrickle.model.changes import PreviewedChange as PreviewedChange
    from pgtrickle.model.errors import *  # noqa: F403
    from pgtrickle.model.finding import Finding as Finding
    from pgtrickle.model.finding import Severity as Severity
    from pgtrickle.model.names import RelationName as RelationName
    from pgtrickle.model.records import Record as Record
    from pgtrickle.model.records import Records as Records
    from pgtrickle.model.stream_table import Action as Action
    from pgtrickle.model.stream_table import RefreshMode as RefreshMode
    from pgtrickle.model.stream_table import RefreshOutcome as RefreshOutcome
    from pgtrickle.model.stream_table import Status as Status
    from pgtrickle.model.table_state import StreamTableState as StreamTableState
    from pgtrickle.model.tier import Tier as Tier

__version__ = "0.1.0"

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "pgtrickle.interfaces.connect": ("connect",),
    "pgtrickle.interfaces.python": ("Trickle",),
    "pgtrickle.interfaces.background": ("BackgroundRun",),
    "pgtrickle.interfaces.ddl.execute": ("StatementResult",),
    "pgtrickle.commands.adopt": ("AdoptionPlan",),
    "pgtrickle.commands.advise": ("Advice", "Candidate"),
    "pgtrickle.commands.alerts": ("Alert",),
    "pgtrickle.commands.bulk": ("CreatedTable",),
    "pgtrickle.commands.caches": ("CachedQueries",),
    "pgtrickle.commands.definitions": ("PlanAction", "PlannedChange"),
    "pgtrickle.commands.explain": ("Explanation",),
    "pgtrickle.commands.list_databases": ("DatabaseTables",),
    "pgtrickle.commands.monitoring": ("HealthCheck",),
    "pgtrickle.commands.publications": ("Publication", "PublicationStatus"),
    "pgtrickle.commands.run": ("RefreshEvent",),
    "pgtrickle.commands.status": ("PastRefresh", "Sidecar", "StreamTableStatus"),
    "pgtrickle.commands.attached": ("AttachedDatabaseStatus",),
    "pgtrickle.commands.subscriptions": ("Subscription",),
    "pgtrickle.commands.top": ("Activity", "TableActivity"),
    "pgtrickle.commands.validate": ("Validation",),
    "pgtrickle.commands.verify": ("VerifiedTable",),
    "pgtrickle.model.changes": ("Change", "ChangeKind", "Preview", "PreviewedChange"),
    "pgtrickle.model.finding": ("Finding", "Severity"),
    "pgtrickle.model.names": ("RelationName",),
    "pgtrickle.model.records": ("Record", "Records"),
    "pgtrickle.model.stream_table": ("Action", "RefreshMode", "RefreshOutcome", "Status"),
    "pgtrickle.model.table_state": ("StreamTableState",),
    "pgtrickle.model.tier": ("Tier",),
    _errors.__name__: tuple(
        name
        for name, value in vars(_errors).items()
        if isinstance(value, type) and issubclass(value, _errors.PgTrickleError)
    ),
}
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    """Import a part of the interface when it is first used, so that `import pgtrickle` is fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
