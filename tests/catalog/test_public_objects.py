"""Schema pgtrickle holds what users call or read, with a comment each. Helpers are in pgtrickle_internal."""

from __future__ import annotations

import psycopg

from pgtrickle.catalog.identity import MIGRATIONS
from pgtrickle.catalog.install import install

PUBLIC = {
    "function": {
        "adopt_materialized_view",
        "alerts",
        "alter_stream_table",
        "bulk_create",
        "change_buffer_sizes",
        "change_point",
        "changes",
        "check_cdc_health",
        "create_or_replace_stream_table",
        "create_stream_table",
        "create_stream_table_if_not_exists",
        "dependency_tree",
        "drain",
        "drop_stream_table",
        "drop_stream_table_publication",
        "explain_refresh_mode",
        "explain_st",
        "export_definition",
        "gate_source",
        "gated_sources",
        "get_refresh_history",
        "get_staleness",
        "health_check",
        "health_summary",
        "is_copy",
        "is_drained",
        "is_enabled",
        "list_sources",
        "manual_refresh",
        "pgt_status",
        "preview_refresh",
        # attached to stream tables, so it is part of what \d and pg_dump show
        "refuse_direct_write",
        "refresh_stream_table",
        "refresh_timeline",
        "register_subscriber",
        "repair",
        "repair_stream_table",
        "repairs",
        "resume_stream_table",
        "set_enabled",
        "attach_database",
        "detach_database",
        "declare_source",
        "sidecar_role",
        "st_refresh_stats",
        "stream_table_to_publication",
        "subscribe",
        "trigger_inventory",
        "undrain",
        "ungate_source",
        "unregister_subscriber",
        "unsubscribe",
        "validate_query",
        "version",
        "waits_for",
        "worker_allocation_status",
    },
    "procedure": {"create_stream_table_and_wait", "refresh_and_wait", "verify_stream_table"},
    "view": {
        "pg_stat_stream_tables",
        "pgt_cdc_status",
        "publication_status",
        "attached_databases",
        "attached_tables",
        "attached_frontiers",
        "remote_readers",
        "broker_entries",
        "quick_health",
        "server_worker_inventory",
        "stream_tables_info",
        "subscriptions",
        "visible_history",
        "visible_repairs",
    },
}
"""What users may use. Anything that only other functions call belongs to pgtrickle_internal."""

OBJECTS = """
select case p.prokind when 'p' then 'procedure' else 'function' end, p.proname::text,
    has_function_privilege('public', p.oid, 'execute'), obj_description(p.oid, 'pg_proc')
from pg_proc p where p.pronamespace = %(schema)s::regnamespace
union all
select 'view', c.relname::text, has_table_privilege('public', c.oid, 'select'),
    obj_description(c.oid, 'pg_class')
from pg_class c where c.relkind = 'v' and c.relnamespace = %(schema)s::regnamespace
"""

HELPERS = (
    "check_cron",
    "cron_field",
    "cron_hint",
    "installation",
    "schedule_seconds",
    "timeout_seconds",
    "waits_for_spark",
)
VIEWS = ("own_drain", "own_gates", "own_remains", "own_requests")


def objects(connection: psycopg.Connection, schema: str) -> list[tuple[str, str, bool, str | None]]:
    return connection.execute(OBJECTS, {"schema": schema}).fetchall()


def test_schema_pgtrickle_holds_only_what_users_may_use(connection: psycopg.Connection) -> None:
    found = objects(connection, "pgtrickle")
    names = {kind: {name for k, name, *_ in found if k == kind} for kind in PUBLIC}
    assert names == PUBLIC
    assert [name for _, name, is_public, _ in found if not is_public] == []


def test_everything_public_has_a_comment(connection: psycopg.Connection) -> None:
    found = objects(connection, "pgtrickle")
    assert [(kind, name) for kind, name, _, comment in found if not comment] == []


def test_a_comment_says_how_a_routine_is_called(connection: psycopg.Connection) -> None:
    for kind, name, _, comment in objects(connection, "pgtrickle"):
        how = {"function": "Call it with SELECT", "procedure": "Call it with CALL", "view": "may read it"}
        assert name == "refuse_direct_write" or how[kind] in (comment or ""), name


def test_an_upgrade_moves_helpers_that_were_public(connection: psycopg.Connection) -> None:
    expected = sorted(objects(connection, "pgtrickle_internal"), key=str)
    moved_by = MIGRATIONS.index("0017_public_functions.sql") + 1
    connection.execute("delete from pgtrickle.pgt_schema_version where version >= %s", (moved_by,))
    for name in HELPERS:
        connection.execute(f"alter function pgtrickle_internal.{name} set schema pgtrickle")
    for name in VIEWS:
        connection.execute(f"alter view pgtrickle_internal.{name} set schema pgtrickle")
    connection.commit()
    assert "Applied migration 0017_public_functions." in install(connection)
    assert sorted(objects(connection, "pgtrickle_internal"), key=str) == expected
    test_schema_pgtrickle_holds_only_what_users_may_use(connection)
