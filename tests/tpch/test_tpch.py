"""All 22 queries of TPC-H follow their sources differentially, whatever happens to all eight tables."""

from __future__ import annotations

import psycopg
import pytest

from tests.fixtures.stream_tables import StreamTables
from tests.tpch.answers import assert_answers
from tests.tpch.conftest import SCALE
from tests.tpch.harsh import CYCLES, change_harshly
from tests.tpch.published import NAMES, query


@pytest.mark.parametrize("name", NAMES)
def test_the_query_is_followed_differentially(
    name: str, stream_table: StreamTables, app: psycopg.Connection, admin: psycopg.Connection
) -> None:
    asked = query(name, SCALE)
    table = stream_table(asked.text, name=name, mode="DIFFERENTIAL", loads=False)
    table.refresh()
    assert_answers(app, name, asked)
    for cycle in range(CYCLES):
        change_harshly(app, cycle)
        table.refresh()
        assert_answers(app, name, asked)
    recorded = admin.execute(
        "select h.action from pgtrickle.pgt_refresh_history h join pgtrickle.pgt_stream_tables using (pgt_id)"
        " where pgt_name = %s order by h.refresh_id",
        (name,),
    ).fetchall()
    assert [action for (action,) in recorded] == ["REINITIALIZE"] + ["DIFFERENTIAL"] * CYCLES
