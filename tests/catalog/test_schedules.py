"""SQL and Python agree on what a schedule is."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.model.errors import BadSchedule
from pgtrickle.scheduler.policy.schedule import Every, parse_schedule

pytestmark = pytest.mark.every_postgres

TEXTS = [
    "1s",
    "500ms",
    "99ms",
    "100ms",
    "0",
    "30",
    "1h30m",
    "1.5h",
    "999999999",
    "999999999w",
    "5220w",
    "soon",
    "-5",
    "1x",
    ".5s",
    "manual",
    "Calculated",
    "٣s",
    "@hourly",
    "@Daily",
    "@midnight",
    "@never",
    "@",
    "",
    "1h 30m",
    "* * * * *",
    "*/5 8-17 * * mon-fri",
    "0 */5 * * * *",
    "* * * * * * *",
    "* * * *",
    " 0  0 1,15\t* 7 ",
    "0 0 31 2 *",
    "0 0 31 2 mon",
    "0 0 30-31 2,4 *",
    "0 0 31 apr *",
    "0 0 */31 2 *",
    "61 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 8",
    "* * * * sun-tue",
    "* * * * fri-sun",
    "* * * * sat-mon",
    "* * * jan/3 *",
    "60 * * * * *",
    "1,,2 * * * *",
    ", * * * *",
    "9-5 * * * *",
    "*/0 * * * *",
    "5/0 * * * *",
    "*-5 * * * *",
    "mon * * * *",
    "* * * monday *",
]


def test_what_sql_takes_python_takes_and_the_other_way_round(app):
    for text in TEXTS:
        assert_agreed(app, text)


def assert_agreed(app: psycopg.Connection, text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except BadSchedule as bad:
        with pytest.raises(psycopg.Error) as refused:
            app.execute("select pgtrickle_internal.schedule_seconds(%s)", (text,))
        assert refused.value.sqlstate == BadSchedule.sqlstate
        assert refused.value.diag.message_hint
        said, wrong = str(refused.value.diag.message_primary), bad.message
        assert said.split(": ")[1:] == [part.replace('"', "'") for part in wrong.split(": ")[1:]]
    else:
        row = app.execute("select pgtrickle_internal.schedule_seconds(%s)", (text,)).fetchone()
        seconds = schedule.interval.total_seconds() if isinstance(schedule, Every) else None
        assert row == (seconds,)


def test_a_cron_schedule_is_stored_and_read_back(source, app):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders', '*/5 8-17 * * MON-fri')")
    row = app.execute("select schedule from pgtrickle.pgt_status()").fetchone()
    assert row == ("*/5 8-17 * * mon-fri",)
