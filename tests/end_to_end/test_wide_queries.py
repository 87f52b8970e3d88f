"""Queries with so many columns that PostgreSQL's limits are near, or passed: recomputed with the reason."""

from __future__ import annotations

import pytest

from pgtrickle.commands.status import table_status
from pgtrickle.model.errors import UnsupportedQuery
from tests.fixtures.databases import APP


def wide(source, name, count, key=""):
    columns = ", ".join(f"c{number} int default {number}" for number in range(count - 1))
    table = source(f"{name}(id int {key}, {columns})")
    table.change(f"insert into {name}(id) values (1), (2)")
    return table


@pytest.mark.every_postgres
def test_what_is_too_wide_is_recomputed_with_the_reason_or_refused(
    source, stream_table, app, database, engine
):
    wide(source, "t", 1000, "primary key")
    wide(source, "u", 790)
    sums = ", ".join(f"sum(c{number}) as s{number}" for number in range(600))
    keys = ", ".join(f"c{number}" for number in range(101))
    queries = {
        "a thousand columns with a key": "select * from t",
        "wide groups": f"select c1, {sums} from t group by c1",
        "groups by many columns": f"select {keys}, count(*) as n from t group by {keys}",
        "many distinct columns": "select distinct * from u",
    }
    for what, query in queries.items():
        table = stream_table(query)
        shown = table_status(database.dsn(APP), table.name)
        assert "columns" in (shown.downgrade_reason or ""), what
        app.execute("update t set c1 = 7 where id = 1")
        app.execute("insert into u(id) values (3)")
        table.refresh()
        table.equals_its_query()
        app.execute("select pgtrickle.drop_stream_table(%s)", (table.name,))
    with pytest.raises(UnsupportedQuery, match="1000 columns"):
        stream_table("select * from t", mode="DIFFERENTIAL")


def test_a_table_of_which_too_many_columns_are_used_is_refused(source, app):
    wide(source, "t", 1600)
    with pytest.raises(Exception, match="uses 1600 columns"):
        app.execute("select pgtrickle.create_stream_table('s', 'select * from t')")
    app.execute("select pgtrickle.create_stream_table('s', 'select id, c1598 from t')")
