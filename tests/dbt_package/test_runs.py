"""dbt builds stream tables: they are loaded when the run ends, follow their sources, and change in place."""

from __future__ import annotations

import threading
from collections import Counter

import psycopg
import pytest

from tests.dbt_package.conftest import WRITES, Project
from tests.fixtures.databases import APP
from tests.fixtures.poolers import new_pooler

CREATED, ALTERED, UNCHANGED, RELOADED = (
    f"{change} STREAM TABLE" for change in ("CREATE", "ALTER", "UNCHANGED", "RELOAD")
)


def test_models_over_models_are_loaded_when_the_run_ends_and_follow_their_sources(project, sidecar, app):
    run = project.run("run").succeeds()
    assert Counter(run.messages.values()) == {CREATED: 10}
    assert project.differences() == []
    assert {'shop."Über Sicht"', "shop_marts.best_days", "shop.region_share"} < project.oids().keys()
    project.follows(WRITES)
    assert app.execute("select count(*) from shop.order_facts").fetchone() != (0,)
    before = project.definitions()
    run = project.run("run").succeeds()
    assert Counter(run.messages.values()) == {UNCHANGED: 10}
    assert project.definitions() == before


def test_what_belongs_to_a_model_is_created_with_it_and_changes_with_its_config(project, sidecar, app):
    indexes = "select indexdef from pg_indexes where tablename = 'order_facts' and indexname ~ '^dbt_stream_'"
    rights = (
        "select grantee::text, privilege_type::text from information_schema.role_table_grants"
        " where table_name = 'order_facts' and grantee <> 'app'"
    )
    sidecars = {("trickle", right) for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRIGGER")}
    project.run("run", "--select", "+order_facts").succeeds()
    described = "select obj_description(t), col_description(t, 1) from to_regclass('shop.order_facts') t"
    assert app.execute(described).fetchone() == (
        "Orders with their customers; it's 100% fresh.",
        "The number of the order.",
    )
    made = [definition for (definition,) in app.execute(indexes)]
    assert len(made) == 2
    assert sum("UNIQUE" in definition for definition in made) == 1
    assert set(app.execute(rights)) == sidecars | {("reader", "SELECT")}
    sources = project.directory / "models" / "sources.yml"
    text = sources.read_text().replace("- columns: [region]", "- columns: [placed, amount]")
    sources.write_text(text.replace("select: [reader]", "select: [app]"))
    project.run("run", "--select", "order_facts").succeeds()
    changed = [definition for (definition,) in app.execute(indexes)]
    assert sorted("placed" in definition for definition in changed) == [False, True]
    assert len(set(made) & set(changed)) == 1
    assert set(app.execute(rights)) == sidecars
    project.follows(WRITES)


def test_a_contract_refuses_other_columns_before_anything_changes(project, sidecar):
    project.run("run", "--select", "+order_facts").succeeds()
    before = project.definitions()
    project.edit("order_facts", "o.amount\n", "o.amount::int as amount\n")
    run = project.run("run", "--select", "order_facts")
    assert "enforced contract that failed" in run.messages["order_facts"]
    assert project.definitions() == before


def test_a_changed_model_is_altered_in_place(project, sidecar, app):
    project.run("run").succeeds()
    before = project.oids()
    project.edit("orders_clean", "<> 'void'", "= 'paid' and amount > 3")
    project.edit("daily_sales", "sum(amount) as amount", "sum(amount) as amount, max(amount) as largest")
    project.edit("top_customers", "select region, customer, amount, rank()", "select customer as who, rank()")
    project.configure("totals", tier="cold", schedule="1h", refresh_timeout="5min", append_only=False)
    run = project.run("run").succeeds()
    altered = {name for name, message in run.messages.items() if message == ALTERED}
    assert altered == {"orders_clean", "daily_sales", "top_customers", "totals"}
    assert set(run.messages.values()) == {ALTERED, UNCHANGED}
    options = (
        "select refresh_tier, schedule, refresh_timeout from pgtrickle.stream_tables_info"
        " where pgt_name = 'totals'"
    )
    assert app.execute(options).fetchone() == ("cold", "1h", 300.0)
    project.configure("totals")
    project.run("run", "--select", "totals").succeeds()
    assert app.execute(options).fetchone() == ("hot", "200ms", None)
    project.follows(WRITES)
    # a stream table with other columns has another table
    changed = {name for name, oid in project.oids().items() if before[name] != oid}
    assert changed == {"shop.daily_sales", "shop.top_customers"}


@pytest.mark.diverges
def test_a_full_refresh_reloads_under_readers_that_notice_nothing(project, sidecar, admin, connect):
    project.run("run", "--select", "+daily_sales").succeeds()
    before = project.oids()
    admin.execute("set pgtrickle.applying = on; update shop.order_facts set amount = -1 where id = 1")
    seen, problems = set[tuple[int, int]](), list[BaseException]()
    done = threading.Event()

    def read(connection: psycopg.Connection) -> None:
        try:
            while not done.is_set():
                with connection.transaction():
                    row = connection.execute(
                        "select count(*), min(tableoid::bigint) from shop.order_facts"
                    ).fetchone()
                assert row is not None
                seen.add(row)
        except BaseException as problem:
            problems.append(problem)

    reader = threading.Thread(target=read, args=(connect(APP),))
    reader.start()
    try:
        run = project.run("run", "--full-refresh", "--select", "+daily_sales").succeeds()
    finally:
        done.set()
        reader.join()
    assert set(run.messages.values()) == {RELOADED}
    assert project.oids() == before
    assert project.differences() == []
    assert problems == []
    assert seen == {(52, before["shop.order_facts"])}


def test_a_view_below_a_stream_table_may_be_created_again_by_each_run(project, sidecar):
    project.write("paid", "{{ config(materialized='view') }} select * from {{ source('raw', 'orders') }}")
    project.write("over_view", "select status, count(*) as n from {{ ref('paid') }} group by status")
    project.run("run", "--select", "paid over_view").succeeds()
    before = project.oids()
    run = project.run("run", "--select", "paid over_view").succeeds()
    assert run.messages["over_view"] == RELOADED
    project.follows(WRITES)
    project.write(
        "paid", "{{ config(materialized='view') }} select * from {{ source('raw', 'orders') }} where id > 5"
    )
    project.run("run", "--select", "paid over_view").succeeds()
    project.follows(WRITES.replace("100", "200"))
    assert project.oids() == before


def test_hooks_run_around_the_load(project, sidecar, app):
    app.execute("create table told (what text)")
    note = "insert into told select '{}: ' || count(*) from customers"
    project.configure(
        "customers_clean",
        pre_hook=[note.format("before")],
        post_hook=["insert into told select 'loaded: ' || count(*) from {{ this }}"],
        sql_header="set local extra_float_digits = 0;",
    )
    project.run("run", "--select", "customers_clean").succeeds()
    assert app.execute("select what from told").fetchall() == [("before: 3",), ("loaded: 3",)]


def test_a_run_goes_through_a_pooler_in_transaction_mode(project: Project, sidecar, database):
    with new_pooler(database.server, (APP,)) as pooler:
        project.port = pooler.port
        project.run("build").succeeds()
        project.configure("totals", tier="warm")
        run = project.run("run", "--full-refresh", "--select", "totals").succeeds()
        assert run.messages["totals"] == RELOADED
    project.follows(WRITES)
