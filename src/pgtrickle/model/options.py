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
    KEEPING = "keeping"


@dataclass(frozen=True, slots=True)
class TableOption:
    """One option. Its default applies on creation; if it is None, the catalog has its own default,
    which `shown_default` says in words.
    """

    name: str
    form: Form
    help: str
    default: str | bool | None = None
    choices: tuple[str, ...] = ()
    is_for_create: bool = True
    is_for_alter: bool = True
    flag: str = ""
    """The command-line flag, if it differs from the name."""
    shown_default: str = ""

    @property
    def cli_flag(self) -> str:
        """The command-line flag. A boolean flag has a second form that switches it off."""
        own = self.flag or "--" + self.name.replace("_", "-")
        return f"{own}/--no-{own[2:]}" if self.form is Form.BOOLEAN else own


OPTIONS: Final = (
    TableOption(
        "schedule",
        Form.SCHEDULE,
        "When to refresh it: at an interval (500ms, 1s, 1h30m), by cron in UTC ('*/5 * * * *', @hourly), "
        "when a source has changed (calculated), or only on request (manual).",
        default="calculated",
    ),
    TableOption(
        "refresh_mode",
        Form.CHOICE,
        "How to refresh it: DIFFERENTIAL applies only changes, and refuses queries for which that is "
        "impossible. FULL computes everything again. AUTO is DIFFERENTIAL if possible and FULL otherwise.",
        default="AUTO",
        choices=("AUTO", "DIFFERENTIAL", "FULL"),
        flag="--mode",
    ),
    TableOption(
        "initialize",
        Form.BOOLEAN,
        "Load it after it is created. Otherwise it stays empty until you refresh it.",
        default=True,
        is_for_alter=False,
    ),
    TableOption(
        "diamond_consistency",
        Form.CHOICE,
        "Whether stream tables on several paths from one source to this one are refreshed together (atomic) "
        "or not (none).",
        choices=("none", "atomic"),
        shown_default="atomic",
    ),
    TableOption(
        "diamond_schedule_policy",
        Form.CHOICE,
        "Whether stream tables that are refreshed together use the fastest or the slowest of their "
        "schedules. By default, each uses its own.",
        choices=("fastest", "slowest", "default"),
        shown_default="default",
    ),
    TableOption(
        "cdc_mode",
        Form.CHOICE,
        "How to capture changes of its sources: with triggers (trigger), from the write-ahead log (wal), or "
        "from the log where that is possible (auto).",
        choices=("trigger", "wal", "auto"),
        shown_default="trigger",
    ),
    TableOption(
        "append_only",
        Form.BOOLEAN,
        "Declare that rows are only ever added to it, so that refreshes insert them without looking for old "
        "ones. The first refresh that removes or changes a row switches it off, with an alert.",
        default=False,
    ),
    TableOption(
        "pooler_compatibility_mode",
        Form.BOOLEAN,
        "Refresh it without prepared statements and without alerts, which some poolers do not support.",
        default=False,
        flag="--pooler-compatibility",
    ),
    TableOption(
        "tier",
        Form.CHOICE,
        "How important it is: hot uses the interval of its schedule, warm twice that, cold ten times that. "
        "frozen is refreshed only on request.",
        choices=("hot", "warm", "cold", "frozen"),
        shown_default="hot",
    ),
    TableOption(
        "refresh_timeout",
        Form.TIMEOUT,
        "Cancel a refresh that takes longer: 30s, 5min, 1h30m, none, or default for the limit of the "
        "sidecar.",
        shown_default="default",
    ),
    TableOption(
        "on_divergence",
        Form.CHOICE,
        "What to do if it does not hold the correct rows: repair loads it again, stop stops its refreshes.",
        choices=("repair", "stop"),
        shown_default="repair",
    ),
    TableOption(
        "keep_changes",
        Form.KEEPING,
        "Keep the rows that refreshes insert and delete, for `pgtrickle changes`: for a length of time (1h, "
        "7d), optionally with the most rows to keep ('1d 50000 rows'; otherwise 1,000,000), or off.",
        shown_default="off",
    ),
    TableOption(
        "auxiliary_results",
        Form.CHOICE,
        "Whether inner results of the query, such as a total that rows are compared with, are kept beside "
        "it: where a change would otherwise read a whole table (auto), wherever possible (always), or never.",
        choices=("auto", "always", "never"),
        shown_default="auto",
    ),
    TableOption(
        "status",
        Form.CHOICE,
        "SUSPENDED stops its refreshes, ACTIVE resumes them.",
        choices=("ACTIVE", "SUSPENDED"),
        is_for_create=False,
    ),
)

BY_NAME: Final = {option.name: option for option in OPTIONS}
ON_CREATE: Final = tuple(option for option in OPTIONS if option.is_for_create)
ON_ALTER: Final = tuple(option for option in OPTIONS if option.is_for_alter)
