"""A row that only just fits on a page of its table does not fit in a buffer, which has two columns more."""

from __future__ import annotations

import pytest
from psycopg.errors import ProgramLimitExceeded

from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres

LONG = "(select string_agg(md5(random()::text || g), '') from generate_series(1, 90) g)"


@pytest.mark.slow
@pytest.mark.parametrize(("count", "type_name", "value"), [(1017, "bigint", "1"), (452, "text", LONG)])
def test_a_row_that_fills_a_page_is_written_and_leaves_a_marker(
    source, follow, app, connect, count, type_name, value
):
    columns = ", ".join(f"c{number} {type_name}" for number in range(count))
    source(f"wide({columns})")
    row = f"insert into wide values ({', '.join([value] * count)})"
    app.execute(row)
    reader = follow("wide")
    writer = connect(APP)
    writer.execute(row)
    writer.commit()
    assert reader.is_marked()
    writer.execute("delete from wide")
    writer.execute("insert into wide (c0) values (null)")
    writer.commit()


def test_a_value_that_stays_in_its_row_is_written_and_leaves_a_marker(source, follow, app, connect):
    """PostgreSQL moves no `tsquery` out of a row."""
    source("searches(q tsquery)")
    largest = _largest(app)
    reader = follow("searches")
    writer = connect(APP)
    writer.execute("insert into searches values (%s::text::tsquery)", (_query(largest),))
    writer.commit()
    assert reader.is_marked()


def test_a_table_of_ordinary_width_is_captured_without_a_block(source, follow, admin):
    source("orders(id int, name text, placed timestamptz, amount numeric, notes jsonb)")
    reader = follow("orders")
    body = "select prosrc from pg_proc where proname = %s"
    (text,) = admin.execute(body, (f"capture_{reader.relid}",)).fetchone()
    assert "exception" not in text


def _query(letters: int) -> str:
    """A query of long words, the last one shorter."""
    return " & ".join("x" * min(2040, letters - start) for start in range(0, letters, 2040))


def _largest(app) -> int:
    """How many letters the largest query has that still fits."""
    fits, too_many = 7000, 8160
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        try:
            with app.transaction(force_rollback=True):
                app.execute("insert into searches values (%s::text::tsquery)", (_query(middle),))
            fits = middle
        except ProgramLimitExceeded:
            too_many = middle
    return fits
