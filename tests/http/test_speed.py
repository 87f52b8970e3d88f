"""The overview of 1,000 stream tables is answered in time, and costs the database little."""

from __future__ import annotations

import time

import pytest

from pgtrickle.interfaces.http import models

TABLES = 1000


@pytest.mark.slow
def test_the_overview_of_a_thousand_stream_tables_is_fast(api, orders, app, admin):
    _create_many(app, admin)
    assert api.get("/overview").json()["counts"]["total"] == TABLES
    models.Overview.model_validate(api.get("/overview").json())
    # the machine may be busy with other tests during one of the rounds
    assert any(_slowest_but_two(api) < 0.1 for _ in range(3))


def _slowest_but_two(api) -> float:
    """The 95th percentile of 40 answers, in seconds."""
    took = []
    for _ in range(40):
        began = time.perf_counter()
        answer = api.get("/overview")
        took.append(time.perf_counter() - began)
        assert answer.status_code == 200
    return sorted(took)[-3]


def _create_many(app, admin) -> None:
    """Many stream tables with a history: one by the public function, the others as rows of the catalog."""
    app.execute("select pgtrickle.create_stream_table('t', 'select id from orders', '1s', 'FULL')")
    app.commit()
    columns = [
        name
        for (name,) in admin.execute(
            "select attname from pg_attribute where attrelid = 'pgtrickle.pgt_stream_tables'::regclass"
            " and attnum > 0 and not attisdropped and attidentity = '' and attgenerated = ''"
            " and attname not in ('pgt_name', 'pgt_relid')"
        )
    ]
    listed = ", ".join(columns)
    admin.execute("set session_replication_role = replica")
    admin.execute(
        f"""do $$ begin for n in 2..{TABLES} loop
            execute format('create table t%s (like t)', n);
            execute format('insert into pgtrickle.pgt_stream_tables (pgt_name, pgt_relid, {listed})'
                ' select %1$L, %1$L::regclass, {listed} from pgtrickle.pgt_stream_tables limit 1', 't' || n);
        end loop; end $$"""
    )
    admin.execute(
        "insert into pgtrickle.pgt_dependencies select (jsonb_populate_record(d,"
        " jsonb_build_object('pgt_id', s.pgt_id))).*"
        " from pgtrickle.pgt_dependencies d, pgtrickle.pgt_stream_tables s where s.pgt_name <> 't'"
    )
    admin.execute(
        "insert into pgtrickle.pgt_refresh_history (pgt_id, start_time, end_time, action, status,"
        " duration_ms, initiated_by) select pgt_id, now(), now(), 'FULL', 'COMPLETED', n, 'scheduler'"
        " from pgtrickle.pgt_stream_tables, generate_series(1, 60) n"
    )
