"""Checks of published stream tables: whether refreshes can write them, and how far subscribers are."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrickle.commands.checkup.patient import Patient
from pgtrickle.model.finding import Finding, failure, ok, warning


def check_publications(patient: Patient) -> Iterator[Finding]:
    """Published tables without a replica identity, and subscribers that are late or have lost their place."""
    unidentified = [row[0] for row in patient.rows("unidentified")]
    for name in unidentified:
        yield failure(
            "publications",
            f"{name} is published without a replica identity: refreshes that remove rows fail",
            f"alter table {name} replica identity full",
        )
    late = patient.rows("late_subscribers")
    for table, slot, state, lag in late:
        if state == "lost":
            what = f"the server has removed log that slot {slot} needs"
            yield failure(
                "publications",
                f"{table}: {what}",
                "drop the subscription of this slot, and create it again",
            )
        elif state == "missing":
            yield warning(
                "publications",
                f"{table}: there is no slot {slot}",
                f"select pgtrickle.unregister_subscriber('{_quoted(table)}', '{_quoted(slot)}')",
            )
        else:
            yield warning(
                "publications",
                f"{table}: the subscriber with slot {slot} is {lag:,} bytes of log behind ({state})",
                "connect it again, or drop its subscription: the server keeps its log for it",
            )
    if not unidentified and not late:
        (count,) = patient.row(
            "select count(distinct stream_table) from pgtrickle.publication_status"
            " where publication is not null"
        )
        yield ok("publications", f"{count:,} stream tables are published, and nobody is late")


def _quoted(text: str) -> str:
    return text.replace("'", "''")
