"""The settings that are limits: past which a query is recomputed in full, and past which an alert is sent."""

from __future__ import annotations

from typing import Final

from pgtrickle.model.setting import Setting, memory_size, number, whole_number

STALE_AFTER: Final = Setting(
    "stale_after",
    60.0,
    number,
    "Send the alert stale_data when a change has waited for this many seconds longer than the schedule of a "
    "stream table allows. 0 sends none.",
    least=0,
    most=315_576_000,
    is_option=False,
)
BUFFER_GROWTH_LIMIT: Final[Setting[int | None]] = Setting(
    "buffer_growth_limit",
    128 << 20,
    memory_size,
    "Send the alert buffer_growth_warning when the change buffers of a source are larger than this, such as "
    "512MB.",
    "128MB",
    is_option=False,
)
PUBLICATION_LAG_WARN_LSN: Final[Setting[int | None]] = Setting(
    "publication_lag_warn_lsn",
    64 << 20,
    memory_size,
    "Warn, and send the alert publication_lag, when a subscriber of a published stream table has more than "
    "this much of the server's log left to confirm, such as 1GB.",
    "64MB",
    is_option=False,
)
SLOT_LAG_WARNING_THRESHOLD_MB: Final = Setting(
    "slot_lag_warning_threshold_mb",
    100,
    whole_number,
    "Send the alert slot_lag_warning when the replication slot of WAL capture holds back more megabytes of "
    "the server's log than this. 0 sends none.",
    least=0,
    is_option=False,
)
MAX_SLOT_WAL_MB: Final = Setting(
    "max_slot_wal_mb",
    10_240,
    whole_number,
    "Give up the replication slot of WAL capture when it holds back more megabytes of the server's log than "
    "this: capture returns to triggers, and stream tables are loaded again. 0 is no limit.",
    least=0,
    is_option=False,
)

MAX_TEXT_BYTES: Final = Setting(
    "max_text_bytes",
    1_000_000,
    whole_number,
    "Use the mode FULL for queries whose text, or the text of a view they read, has more bytes than this.",
    least=1,
    is_option=False,
)
MAX_DEPTH: Final = Setting(
    "max_depth",
    250,
    whole_number,
    "Use the mode FULL for queries that nest expressions and subqueries deeper than this. Each AND of a "
    "chain counts as a level.",
    least=1,
    is_option=False,
)
MAX_RELATIONS: Final = Setting(
    "max_relations",
    100,
    whole_number,
    "Use the mode FULL for queries that name more tables, views and functions than this.",
    least=1,
    is_option=False,
)
MAX_SUBQUERIES: Final = Setting(
    "max_subqueries",
    100,
    whole_number,
    "Use the mode FULL for queries with more subqueries in expressions than this, including those of views.",
    least=1,
    is_option=False,
)
MAX_GROUPING_SETS: Final = Setting(
    "max_grouping_sets",
    64,
    whole_number,
    "Use the mode FULL for queries with more grouping sets in one GROUP BY than this.",
    least=1,
    is_option=False,
)
