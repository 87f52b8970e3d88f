"""The options of a stream table. SQL, Python, the CLI and CREATE STREAM TABLE take exactly these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Form(Enum):
    """The form of an option's value."""

    CHOICE = "choice"
    BOOLEAN = "boolean"
    SCHEDULE = "schedule"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class TableOption:
    """One option. Its default applies on creation; if it is None, the catalog has its own default."""

    name: str
    form: Form
    help: str
    default: str | bool | None = None
    choices: tuple[str, ...] = ()
    is_for_create: bool = True
    is_for_alter: bool = True
    flag: str = ""
    """The command-line flag, if it differs from the name."""

    @property
    def cli_flag(self) -> str:
        """The command-line flag. A boolean flag has a second form that switches it off."""
        own = self.flag or "--" + self.name.replace("_", "-")
        return f"{own}/--no-{own[2:]}" if self.form is Form.BOOLEAN else own


OPTIONS: Final = (
    TableOption(
        "schedule",
        Form.SCHEDULE,
        "When it is refreshed: an interval (500ms, 1s, 1h30m), cron in UTC ('*/5 8-17 * * mon-fri', "
        "@hourly), calculated (when a source has changed), or manual.",
        default="calculated",
    ),
    TableOption(
        "refresh_mode",
        Form.CHOICE,
        "AUTO, DIFFERENTIAL (refused if the query cannot be followed incrementally), or FULL.",
        default="AUTO",
        choices=("AUTO", "DIFFERENTIAL", "FULL"),
        flag="--mode",
    ),
    TableOption(
        "initialize",
        Form.BOOLEAN,
        "Load it right away; otherwise it stays empty until its first refresh by hand.",
        default=True,
        is_for_alter=False,
    ),
    TableOption(
        "diamond_consistency",
        Form.CHOICE,
        "Whether tables on several paths from one source to this one are refreshed together: atomic or none.",
        choices=("none", "atomic"),
    ),
    TableOption(
        "diamond_schedule_policy",
        Form.CHOICE,
        "Whether tables that are refreshed together follow the fastest or the slowest of their schedules.",
        choices=("fastest", "slowest"),
    ),
    TableOption(
        "cdc_mode",
        Form.CHOICE,
        "How changes of its sources are captured: trigger, or auto to let pgtrickle choose.",
        choices=("auto", "trigger"),
    ),
    TableOption("append_only", Form.BOOLEAN, "Stored, and without effect so far.", default=False),
    TableOption(
        "pooler_compatibility_mode",
        Form.BOOLEAN,
        "Refresh it without prepared statements, and send no alerts about it.",
        default=False,
        flag="--pooler-compatibility",
    ),
    TableOption(
        "tier",
        Form.CHOICE,
        "hot, warm (intervals twice as long), cold (ten times), or frozen (only refreshed on request).",
        choices=("hot", "warm", "cold", "frozen"),
    ),
    TableOption(
        "refresh_timeout",
        Form.TIMEOUT,
        "Cancel a refresh that takes longer: 30s, 5min, 1h30m, none, or default (that of the sidecar).",
    ),
    TableOption(
        "on_divergence",
        Form.CHOICE,
        "What to do if it does not hold the rows it should: repair (load it again) or stop.",
        choices=("repair", "stop"),
    ),
    TableOption(
        "status",
        Form.CHOICE,
        "ACTIVE, or SUSPENDED to stop its refreshes.",
        choices=("ACTIVE", "SUSPENDED"),
        is_for_create=False,
    ),
)

BY_NAME: Final = {option.name: option for option in OPTIONS}
ON_CREATE: Final = tuple(option for option in OPTIONS if option.is_for_create)
ON_ALTER: Final = tuple(option for option in OPTIONS if option.is_for_alter)
