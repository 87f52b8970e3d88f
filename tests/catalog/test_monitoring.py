"""What people watch an installation by is true, and hides errors from those who may not see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgtrickle.catalog.outcomes import Refreshed, commit_refresh, record_failure
from pgtrickle.commands.monitoring import health, timeline
from pgtrickle.model.finding import Severity
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, StreamTableId

pytestmark = pytest.mark.every_postgres

SALES, COUNTS = StreamTableId(1), StreamTableId(2)


@pytest.fixture(autouse=True)
def tables(source, app):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('sales', 'select sum(amount) as total from orders')")
    app.execute(
        "select pgtrickle.create_stream_table('\"Counts\"', 'select count(*) as number from sales', '1h')"
    )


def refreshed(connection: psycopg.Connection, table: StreamTableId, action: Action = Action.FULL) -> None:
    row = connection.execute("select pg_current_snapshot()::text").fetchone()
    assert row is not None
    frontier = Frontier.parse(row[0])
    commit_refresh(
        connection,
        table,
        Refreshed(
            action, datetime.now(UTC), datetime.now(UTC), frontier, upstream=frontier, milliseconds=20,
            rows_inserted=3, rows_deleted=1,
        ),
    )  # fmt: skip
    connection.commit()


def failed(connection: psycopg.Connection, table: StreamTableId, retries: int = 1) -> None:
    record_failure(
        connection,
        table,
        "the value 4711 is wrong",
        action=Action.FULL,
        started_at=datetime.now(UTC),
        delays=[timedelta(seconds=1)] * retries,
    )
    connection.commit()


def serve(admin: psycopg.Connection) -> None:
    """Pretend that a sidecar has just reported."""
    admin.execute(
        "insert into pgtrickle.pgt_sidecars"
        " (sidecar_id, host, process, version, workers, busy, queued, vitals)"
        " values (gen_random_uuid(), 'here', 1, '1', 4, 4, 11, '{\"hits\": 3, \"misses\": 1}')"
    )


def one(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row


def test_the_timeline_holds_the_refreshes_of_all_newest_first(connection, app, database):
    refreshed(connection, SALES)
    refreshed(connection, COUNTS)
    failed(connection, SALES)
    columns = "stream_table, action, status, rows_inserted, rows_deleted, error_message"
    rows = [
        ("public.sales", "FULL", "FAILED", 0, 0, "the value 4711 is wrong"),
        ('public."Counts"', "FULL", "COMPLETED", 3, 1, None),
        ("public.sales", "FULL", "COMPLETED", 3, 1, None),
    ]
    assert app.execute(f"select {columns} from pgtrickle.refresh_timeline()").fetchall() == rows
    assert app.execute(f"select {columns} from pgtrickle.refresh_timeline(1)").fetchall() == rows[:1]
    assert app.execute("select * from pgtrickle.refresh_timeline(-5)").fetchall() == []
    assert [str(past.name) for past in timeline(database.dsn("app"), limit=2)] == [
        "public.sales",
        'public."Counts"',
    ]


def test_others_see_no_error_messages(connection, admin):
    failed(connection, SALES)
    failed(connection, SALES)
    admin.execute("drop role if exists stranger; create role stranger")
    admin.execute("set role stranger")
    try:
        for query in (
            "select * from pgtrickle.refresh_timeline()",
            "select * from pgtrickle.st_refresh_stats()",
            "select * from pgtrickle.health_check()",
            "select * from pgtrickle.explain_st('public.sales')",
            "select * from pgtrickle.alerts(null)",
            "select * from pgtrickle.pg_stat_stream_tables",
        ):
            found = admin.execute(query).fetchall()
            assert found
            assert "4711" not in str(found)
    finally:
        admin.execute("reset role")
        admin.execute("drop role stranger")


def test_the_statistics_count_what_the_history_holds(connection, app):
    refreshed(connection, SALES)
    refreshed(connection, SALES, Action.DIFFERENTIAL)
    failed(connection, SALES)
    columns = (
        "pgt_schema, pgt_name, status, is_populated, total_refreshes, successful_refreshes, failed_refreshes,"
        " total_rows_inserted, total_rows_deleted, avg_duration_ms, last_refresh_action, last_refresh_status"
    )
    sales = ("public", "sales", "ERROR", True, 3, 2, 1, 6, 2, 20.0, "FULL", "FAILED")
    counts = ("public", "Counts", "INITIALIZING", False, 0, 0, 0, 0, 0, None, None, None)
    assert app.execute(f"select {columns} from pgtrickle.st_refresh_stats()").fetchall() == [counts, sales]
    view = (
        "select pgt_id, cdc_modes, consecutive_errors, stale from pgtrickle.pg_stat_stream_tables order by 1"
    )
    assert app.execute(view).fetchall() == [(1, ["trigger"], 1, False), (2, ["trigger"], 0, False)]


def test_data_is_stale_if_it_is_older_than_its_schedule_explains(connection, source, admin, app):
    refreshed(connection, SALES)
    refreshed(connection, COUNTS)
    app.execute("insert into orders values (2, 5)")
    app.execute("select pgtrickle.alter_stream_table('\"Counts\"', schedule => '1m')")
    for seconds in (30, 7000):
        admin.execute(
            "update pgtrickle.pgt_stream_tables set data_timestamp = now() - %s * interval '1 s'", (seconds,)
        )
        for side in (0, 1):
            admin.execute(
                f"update pgtrickle_changes.touched_{side} set touched_at = now() - interval '1 day'"
            )
        stale = dict(app.execute("select pgt_name, stale from pgtrickle.st_refresh_stats()").fetchall())
        # sales is calculated, so its reader says how late it may be
        assert stale == {"sales": False, "Counts": seconds > 121}
    app.execute("select pgtrickle.drop_stream_table('\"Counts\"')")
    assert one(app, "select stale from pgtrickle.st_refresh_stats()") == (True,)
    app.execute("select pgtrickle.alter_stream_table('sales', schedule => 'manual')")
    assert one(app, "select stale from pgtrickle.st_refresh_stats()") == (False,)


def severities(connection: psycopg.Connection) -> dict[str, str]:
    rows = connection.execute("select check_name, severity from pgtrickle.health_check()").fetchall()
    assert len(dict(rows)) == len(rows)
    return {name: severity for name, severity in rows if severity != "OK"}


def test_health_names_what_is_wrong(connection, app, admin, database):
    assert severities(app) == {"scheduler_running": "ERROR"}
    serve(admin)
    assert severities(app) == {"worker_pool": "WARN", "job_queue": "WARN"}
    admin.execute("update pgtrickle.pgt_sidecars set busy = 0, queued = 0")
    assert severities(app) == {}
    failed(connection, SALES)
    assert severities(app) == {"error_tables": "ERROR", "consecutive_errors": "WARN"}
    failed(connection, SALES)
    app.execute("select pgtrickle.gate_source('orders')")
    admin.execute("select pgtrickle.drain(1)")
    admin.execute("alter table orders disable trigger all")
    found = severities(app)
    assert found.keys() == {"suspended_tables", "consecutive_errors", "gated_sources", "drained", "capture"}
    details = {check.name: check.detail for check in health(database.dsn("app"))}
    assert details["suspended_tables"] == "suspended: public.sales"
    assert details["capture"].endswith("public.orders (a trigger is disabled)")
    assert {c.severity for c in health(database.dsn("app"))} == {Severity.OK, Severity.WARN, Severity.ERROR}


def test_the_summaries_say_the_same_in_one_row(connection, app, admin):
    assert one(app, "select * from pgtrickle.quick_health") == (2, 0, 0, False, "CRITICAL")
    serve(admin)
    assert one(app, "select * from pgtrickle.quick_health") == (2, 0, 0, True, "OK")
    assert one(app, "select * from pgtrickle.health_summary()") == (
        2, 0, 0, 0, 0, 0, None, "ACTIVE", 0.75,
    )  # fmt: skip
    refreshed(connection, COUNTS)
    failed(connection, SALES)
    assert one(app, "select error_tables, status from pgtrickle.quick_health") == (1, "WARNING")
    failed(connection, SALES)
    assert one(app, "select status from pgtrickle.quick_health") == ("CRITICAL",)
    counts = "select total_stream_tables, active_count, error_count, suspended_count from"
    assert one(app, f"{counts} pgtrickle.health_summary()") == (2, 1, 0, 1)
    app.execute("select pgtrickle.drop_stream_table('sales', cascade => true)")
    assert one(app, "select * from pgtrickle.quick_health") == (0, 0, 0, True, "EMPTY")


def test_the_health_of_capture_says_what_is_missing(app, admin):
    alerts = "select source_table, cdc_mode, alert from pgtrickle.check_cdc_health()"
    assert app.execute(alerts).fetchall() == [
        ("public.orders", "trigger", None),
        ("public.sales", "trigger", None),
    ]
    admin.execute(
        "do $$ begin execute format('drop table pgtrickle_changes.changes_%s_0',"
        " 'sales'::regclass::oid); end $$"
    )
    trigger = one(admin, "select trigger_name from pgtrickle.trigger_inventory() limit 1")[0]
    admin.execute(f"drop trigger {trigger} on orders")
    assert app.execute(alerts).fetchall() == [
        ("public.orders", "trigger", "a trigger is missing"),
        ("public.sales", "trigger", "a change buffer is missing"),
    ]
    assert app.execute(
        "select pgt_schema, pgt_name, source_schema, source_name, cdc_mode, slot_name"
        " from pgtrickle.pgt_cdc_status order by 2"
    ).fetchall() == [
        ("public", "Counts", "public", "sales", "trigger", None),
        ("public", "sales", "public", "orders", "trigger", None),
    ]


def test_the_tree_draws_what_is_below_a_stream_table_once(app, source):
    source("customers(id int)")
    for name, query in (
        ("left_side", "select total from sales"),
        ("right_side", "select total from sales, customers"),
        ("tip", "select l.total from left_side l, right_side r"),
    ):
        app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))
    lines = [line for (line,) in app.execute("select tree_line from pgtrickle.dependency_tree()")]
    assert lines == [
        'public."Counts"',
        "└── public.sales",
        "    └── public.orders [src]",
        "public.tip",
        "├── public.left_side",
        "│   └── public.sales (see above)",
        "└── public.right_side",
        "    ├── public.sales (see above)",
        "    └── public.customers [src]",
    ]
    nodes = "select node, node_type, depth, status, refresh_mode from pgtrickle.dependency_tree()"
    assert app.execute(nodes).fetchall()[:3] == [
        ('public."Counts"', "stream_table", 0, "INITIALIZING", "AUTO"),
        ("public.sales", "stream_table", 1, "INITIALIZING", "AUTO"),
        ("public.orders", "source_table", 2, None, None),
    ]
    app.execute("set client_encoding = 'LATIN1'")
    assert one(app, "select tree_line from pgtrickle.dependency_tree() offset 1") == ("`-- public.sales",)


def test_a_stream_table_is_explained_by_its_properties(connection, app):
    refreshed(connection, SALES)
    found = dict(app.execute("select * from pgtrickle.explain_st('sales')").fetchall())
    assert found["pgt_name"] == "public.sales"
    assert found["output_columns"] == "total bigint"
    assert found["sources"] == "public.orders"
    assert found["readers"] == 'public."Counts"'
    assert found["is_populated"] == "true"
    assert '"samples": 1' in found["refresh_timing_stats"]
    assert '"public.sales" -> "public.\\"Counts\\""' in found["dependency_graph_dot"]
    assert "query_plan" not in found
    with pytest.raises(psycopg.Error, match="there is no stream table nope"):
        app.execute("select * from pgtrickle.explain_st('nope')")


def test_only_the_owner_has_the_query_evaluated(app, admin):
    found = dict(app.execute("select * from pgtrickle.explain_st('sales', true)").fetchall())
    assert "Aggregate" in found["query_plan"]
    assert "actual" in found["query_plan"]
    # the query may call functions of its owner, which a superuser should not run
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only its owner"):
        admin.execute("select * from pgtrickle.explain_st('public.sales', true)")


def test_a_copy_can_be_looked_at(connection, app, admin):
    """Its OIDs mean other tables, so nothing is looked up by them."""
    refreshed(connection, SALES)
    admin.execute("update pgtrickle.pgt_identity set database_id = 1")
    assert one(app, "select pgtrickle.is_copy()") == (True,)
    assert severities(app)["original_database"] == "ERROR"
    assert {alert for (alert,) in app.execute("select alert from pgtrickle.check_cdc_health()")} == {
        "the database is a copy"
    }
    for what in (
        "pgt_status()",
        "st_refresh_stats()",
        "refresh_timeline()",
        "health_summary()",
        "quick_health",
        "pg_stat_stream_tables",
        "pgt_cdc_status",
        "alerts(null)",
        "dependency_tree()",
    ):
        assert app.execute(f"select * from pgtrickle.{what}").fetchall()
    assert app.execute("select * from pgtrickle.change_buffer_sizes()").fetchall() == []
    nodes = [node for (node,) in app.execute("select node from pgtrickle.dependency_tree()")]
    assert nodes == ['public."Counts"', "public.sales", "public.orders"]
    assert one(app, "select result from pgtrickle.validate_query('select id from orders')") == ("REFUSED",)
