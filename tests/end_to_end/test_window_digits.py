"""Numbers of window functions are written with the digits that PostgreSQL gives them."""

from __future__ import annotations

QUERY = (
    "select id, avg(amount) over (order by id rows between 1 preceding and 1 following) as mean,"
    " sum(rate) over (partition by id % 2 order by id) as total from readings"
)


def as_text(app, query):
    return sorted(app.execute(f"select q::text from ({query}) q").fetchall())


def test_a_sliding_average_keeps_its_trailing_zeros(source, stream_table, app):
    rows = [(1, 10, "1.50"), (2, 20, "2.5"), (3, 5, "0.000"), (4, 7, "1")]
    readings = source("readings(id int primary key, amount int, rate numeric)", rows=rows)
    table = stream_table(QUERY, mode="DIFFERENTIAL")
    assert as_text(app, "select * from stream_1") == as_text(app, QUERY)
    readings.change(
        "update readings set amount = 21, rate = 2.500 where id = 2", "delete from readings where id = 4"
    )
    assert table.refresh().action.value == "DIFFERENTIAL"
    assert as_text(app, "select * from stream_1") == as_text(app, QUERY)
