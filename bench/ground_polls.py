"""A poll of the ground of a thousand stream tables, and of ten thousand, when nothing has changed."""

from __future__ import annotations

from statistics import median

from bench.crowd import crowd
from bench.figures import Figure, at_most
from bench.stage import Connection, Place, Stage
from bench.timing import milliseconds, percentile
from pgtrickle.catalog.dependencies import ground_state, poll_ground, settle
from pgtrickle.model.stream_table import StreamTableId

LIMITS = (50.0, 500.0)
WARMING = 3
POLLS = 20
CHECKS = 200


def ground_polls(stage: Stage) -> list[Figure]:
    """The same database with the first number of stream tables, then with the second."""
    figures, made = [], 0
    with stage.database("ground_polls") as place:
        for tables, limit in zip(stage.sizes.many_tables, LIMITS, strict=True):
            took, checks = measured(place, tables, made)
            made = tables
            note = (
                f"95 % below {percentile(took, 95):.3g} ms; the check of one refresh {median(checks):.3g} ms;"
                " where no transaction has ended since the last poll, nothing is asked"
            )
            what = f"poll of the ground, {tables:,} stream tables"
            samples = {"milliseconds": took, "checks": checks}
            figures.append(Figure(what, median(took), "ms", at_most(limit), note, samples))
    return figures


def measured(place: Place, tables: int, made: int) -> tuple[list[float], list[float]]:
    """Milliseconds of polls that ask for everything, and of what one refresh asks."""
    crowd(place, tables, made)
    # those that others read got triggers after they were recorded, which means nothing to them
    for table in poll_ground(place.connection, None)[1]:
        assert settle(place.connection, table, waits=False) is None
    place.connection.execute("vacuum analyze pgtrickle.pgt_ground")
    polls = [milliseconds(lambda: _poll(place.connection)) for _ in range(WARMING + POLLS)]
    ids = [StreamTableId(tables // 2)]
    checks = [milliseconds(lambda: ground_state(place.connection, ids)) for _ in range(WARMING + CHECKS)]
    return polls[WARMING:], checks[WARMING:]


def _poll(connection: Connection) -> None:
    _, moved = poll_ground(connection, None)
    assert not moved, f"the ground of {len(moved)} stream tables has moved"
