"""What dbt does beside building: names in use, removed models, missing sidecars, tests and freshness."""

from __future__ import annotations

import pytest

from tests.dbt_package.conftest import WRITES, Project

DROP = ("run-operation", "drop_removed_stream_tables")
DRY = (*DROP, "--args", "{dry_run: true}")


def test_removed_models_are_dropped_by_the_operation_and_other_stream_tables_never(project, sidecar, app):
    project.run("run").succeeds()
    app.execute("select pgtrickle.create_stream_table('shop.by_hand', 'select id from orders')")
    app.execute("select pgtrickle.create_stream_table('shop.taken', 'select id from customers')")
    project.write("taken", "select id from {{ source('raw', 'customers') }} where id > 1")
    run = project.run("run", "--select", "taken").succeeds()
    assert run.messages == {"taken": "ALTER STREAM TABLE"}
    before = project.oids()
    assert "no stream tables to drop" in project.run(*DROP).succeeds().said
    (project.directory / "models" / "sources.yml").unlink()
    for model in ("region_share", "region_sales", "totals", "quoted", "best_days", "taken"):
        project.remove(model)
    sources = "sources: [{name: raw, schema: public, tables: [{name: orders}, {name: customers}]}]"
    (project.directory / "models" / "others.yml").write_text(sources)
    removed = {"region_share", "region_sales", "totals", '"Über Sicht"'}
    gone = {f"shop.{name}" for name in removed} | {"shop_marts.best_days"}
    said = project.run(*DRY).succeeds().said
    assert {name for name in before if f"would drop stream table {name} " in said} == gone
    assert project.oids() == before
    said = project.run(*DROP).succeeds().said
    assert {name for name in before if f"dropped stream table {name} " in said} == gone
    assert project.oids().keys() == before.keys() - gone
    assert app.execute("select count(*) from shop.dbt_stream_tables").fetchone() == (5,)
    project.follows(WRITES)


def test_another_project_neither_changes_nor_drops_what_this_one_created(project, sidecar):
    project.run("run", "--select", "customers_clean").succeeds()
    before = project.definitions()
    settings = project.directory / "dbt_project.yml"
    text = settings.read_text()
    settings.write_text(
        text.replace("name: shop", "name: other").replace("  shop:\n    +", "  other:\n    +")
    )
    project.edit("customers_clean", "initcap(name)", "name")
    run = project.run("run", "--select", "customers_clean")
    assert "belongs to the dbt project shop" in run.messages["customers_clean"]
    project.configure("customers_clean", alias="elsewhere")
    assert "no stream tables to drop" in project.run(*DROP).succeeds().said
    assert project.definitions() == before


def test_what_has_the_name_of_a_model_stays_until_the_stream_table_is_loaded(project, sidecar, app):
    kinds = {"customers_clean": "view", "orders_clean": "materialized view", "paid": "table"}
    app.execute("create schema shop; grant usage on schema shop to trickle")
    for name, kind in kinds.items():
        app.execute(f"create {kind} shop.{name} as select 'old'::text as name from orders")
    project.write("paid", "select id from {{ source('raw', 'orders') }} where status = 'paid'")
    project.edit("customers_clean", "region from", "now()::text || region as region from")
    run = project.run("run", "--select", *kinds)
    assert "PGT-P002" in run.messages["customers_clean"]
    assert app.execute("select count(*) from shop.customers_clean where name = 'old'").fetchone() == (60,)
    project.edit("customers_clean", "now()::text || region as region from", "region from")
    project.run("run", "--select", *kinds).succeeds()
    relations = (
        "select relname::text, relkind::text from pg_class where relnamespace = 'shop'::regnamespace"
        " and relkind <> 'i' and relname <> 'dbt_stream_tables' order by 1"
    )
    assert app.execute(relations).fetchall() == [(name, "r") for name in kinds]
    assert project.differences() == []
    project.follows(WRITES)


def test_a_stream_table_whose_table_was_dropped_is_created_again(project, sidecar, app):
    project.run("run", "--select", "customers_clean").succeeds()
    app.execute("drop table shop.customers_clean")
    project.run("run", "--select", "customers_clean").succeeds()
    project.follows(WRITES)
    assert project.oids().keys() == {"shop.customers_clean"}


def test_without_a_sidecar_a_run_says_so_unless_it_need_not_wait(project: Project, app):
    run = project.run("run", "--select", "customers_clean")
    said = "stream table shop.customers_clean was not refreshed: no sidecar serves this database"
    assert said in run.messages["customers_clean"]
    assert "Start one with: pgtrickle run" in run.messages["customers_clean"]
    project.configure("customers_clean", wait_timeout=0)
    project.configure("orders_clean", initialize=False, status="SUSPENDED")
    run = project.run("run", "--select", "customers_clean", "orders_clean").succeeds()
    states = "select pgt_name::text, status from pgtrickle.stream_tables_info order by 1"
    assert app.execute(states).fetchall() == [
        ("customers_clean", "INITIALIZING"),
        ("orders_clean", "SUSPENDED"),
    ]


def test_without_pgtrickle_a_run_says_how_to_install_it(project: Project, admin):
    admin.execute("drop schema pgtrickle, pgtrickle_internal cascade")
    run = project.run("run", "--select", "customers_clean")
    assert "Install it with `pgtrickle install`" in run.messages["customers_clean"]


def test_a_suspended_stream_table_is_reported_and_resumed_by_the_config(project, sidecar, app):
    project.run("run", "--select", "customers_clean").succeeds()
    app.execute("select pgtrickle.alter_stream_table('shop.customers_clean', status => 'SUSPENDED')")
    assert "is suspended" in project.run("run", "--select", "customers_clean").succeeds().said
    project.configure("customers_clean", status="ACTIVE")
    project.run("run", "--select", "customers_clean").succeeds()
    project.follows(WRITES)


@pytest.mark.diverges
def test_tests_compare_with_the_query_and_freshness_is_the_age_of_what_is_not_shown(
    project, sidecar, app, admin
):
    project.run("run").succeeds()
    run = project.run("build", "--select", "order_facts", "region_share").succeeds()
    assert sum(status == "pass" for status in run.statuses.values()) == 2
    assert project.run("source", "freshness").succeeds().ages == {"region_sales": 0.0}
    app.execute("select pgtrickle.gate_source('orders')")
    app.execute(WRITES)
    age = project.run("source", "freshness").succeeds().ages["region_sales"]
    assert age is not None
    assert 0 < age < 300
    app.execute("select pgtrickle.ungate_source('orders')")
    project.follows()
    app.execute("select pgtrickle.alter_stream_table('shop.region_share', on_divergence => 'stop')")
    admin.execute("set pgtrickle.applying = on; delete from shop.region_share where region = 'north'")
    run = project.run("test", "--select", "region_share")
    assert not run.is_success
    (message,) = run.messages.values()
    assert "shop.region_share does not equal its query" in message
    assert "north" in message
