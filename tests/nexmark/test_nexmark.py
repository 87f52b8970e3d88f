"""The queries of Nexmark follow people, auctions and bids differentially."""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.fixtures.stream_tables import StreamTables
from tests.nexmark.asked import NAMES, query
from tests.nexmark.changing import changes
from tests.nexmark.generating import Site

CYCLES: Final = 3


def change(app: psycopg.Connection, site: Site, cycle: int) -> None:
    for transaction in changes(site, cycle):
        with app.transaction():
            for statement in transaction:
                app.execute(statement)


@pytest.mark.parametrize("name", NAMES)
def test_the_query_is_followed_differentially(
    name: str, stream_table: StreamTables, app: psycopg.Connection, admin: psycopg.Connection, site: Site
) -> None:
    table = stream_table(query(name), name=name, mode="DIFFERENTIAL")
    for cycle in range(CYCLES):
        change(app, site, cycle)
        table.refresh()
        table.equals_its_query()
    recorded = admin.execute(
        "select h.action from pgtrickle.pgt_refresh_history h join pgtrickle.pgt_stream_tables using (pgt_id)"
        " where pgt_name = %s order by h.refresh_id",
        (name,),
    ).fetchall()
    assert [action for (action,) in recorded] == ["REINITIALIZE"] + ["DIFFERENTIAL"] * CYCLES


def test_every_cycle_moves_every_answer(app: psycopg.Connection, site: Site) -> None:
    """Otherwise the tests above would compare little."""
    before = _answers(app)
    for cycle in range(CYCLES):
        change(app, site, cycle)
        after = _answers(app)
        assert [name for name in NAMES if not after[name] or after[name] == before[name]] == []
        before = after


def _answers(app: psycopg.Connection) -> dict[str, list[str]]:
    return {
        name: sorted(row[0] for row in app.execute(f"select answer::text from ({query(name)}) answer"))
        for name in NAMES
    }
