"""The owner of a stream table need not be the role that installed pgtrickle and runs the sidecar."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

from tests.fixtures.databases import APP, TRICKLE

pytestmark = pytest.mark.every_postgres

RIGHTS = f"pgtrickle belongs to the role {TRICKLE} here, and {APP} does not have the rights of {TRICKLE}"
GRANT = f"grant {TRICKLE} to {APP}"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> NoReturn:
        raise AssertionError("nothing here needs Spark")

    monkeypatch.setattr("pgtrickle.pipeline.session.open_spark", start)


@pytest.fixture
def sales(source, cli):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    assert cli("create", "sales", "--query", "select sum(amount) as total from orders").exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("status",),
        ("status", "sales"),
        ("history", "sales"),
        ("sidecars",),
        ("alter", "sales", "--schedule", "5s"),
        ("alter", "sales", "--query", "select sum(amount) + 0 as total from orders"),
        ("resume", "sales"),
        ("repair", "sales"),
        ("gate", "orders"),
        ("ungate", "orders"),
        ("validate", "--query", "select id from orders"),
        ("drop", "sales"),
    ],
)
def test_an_owner_does_everything_through_public_functions(command, sales, cli):
    answer = cli(*command)
    assert (answer.exit_code, answer.err) == (0, "")


def test_an_owner_sees_the_plan(sales, cli):
    answer = cli("explain", "sales")
    assert (answer.exit_code, answer.err) == (0, "")
    assert "refresh mode: DIFFERENTIAL (requested: AUTO)" in answer.out
    assert answer.out == cli("explain", "sales", role=TRICKLE).out


def test_the_plan_over_a_materialized_view_needs_no_right_on_its_copy(source, app, cli):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute(f"create materialized view m as table orders; grant select on m to {TRICKLE}")
    assert cli("create", "sales", "--query", "select sum(amount) as total from m").exit_code == 0
    answer = cli("explain", "sales")
    assert (answer.exit_code, answer.err) == (0, "")
    assert "sources followed by comparing snapshots:" in answer.out


@pytest.mark.parametrize("command", [("refresh", "sales"), ("verify", "sales")])
def test_without_a_sidecar_an_owner_is_told_to_start_one(command, sales, cli):
    answer = cli(*command)
    assert answer.exit_code == 3
    assert "no sidecar serves this database" in answer.err
    assert "Start one with `pgtrickle run`" in answer.err
    assert GRANT in answer.err
    assert "pgt_" not in answer.err


@pytest.mark.parametrize("command", [("run",), ("clear-caches",)])
def test_what_only_a_sidecar_may_do_names_the_right_and_the_grant(command, sales, cli):
    answer = cli(*command)
    assert answer.exit_code == 2
    assert RIGHTS in answer.err
    assert GRANT in answer.err
    assert "pgt_" not in answer.err


def test_the_grant_of_the_hint_is_enough(sales, cli, admin):
    admin.execute(GRANT)
    try:
        assert cli("clear-caches").exit_code == 0
    finally:
        admin.execute(f"revoke {TRICKLE} from {APP}")


def test_the_sidecars_role_gates_what_it_may_only_read(sales, cli):
    assert cli("gate", "orders", role=TRICKLE).exit_code == 0
    assert cli("ungate", "orders", role=TRICKLE).exit_code == 0


def test_gating_what_one_may_only_read_names_the_grant(sales, cli, admin):
    admin.execute("create table prices(id int primary key)")
    admin.execute(f"grant select on prices to {APP}; grant select, trigger on prices to {TRICKLE}")
    assert cli("create", "ids", "--query", "select id from prices").exit_code == 0
    answer = cli("gate", "prices")
    assert answer.exit_code == 2
    assert "you need write access to public.prices" in answer.err
    assert f"grant insert on public.prices to {APP}" in answer.err
    admin.execute(f"grant insert on public.prices to {APP}")
    assert cli("gate", "prices").exit_code == 0


def test_a_stranger_reads_but_changes_nothing(sales, cli, admin, database):
    admin.execute(
        f"do $$ begin create role stranger login password '{database.server.password}';"
        " exception when duplicate_object then null; end $$"
    )
    reads: tuple[tuple[str, ...], ...] = (
        ("list",),
        ("status", "public.sales"),
        ("history", "public.sales"),
        ("explain", "public.sales"),
    )
    writes: tuple[tuple[str, ...], ...] = (
        ("alter", "public.sales", "--schedule", "5s"),
        ("drop", "public.sales"),
        ("gate", "orders"),
    )
    for command in reads:
        answer = cli(*command, role="stranger")
        assert (answer.exit_code, answer.err) == (0, ""), command
    for command in writes:
        answer = cli(*command, role="stranger")
        assert answer.exit_code == 2, command
        assert "pgt_" not in answer.err
    assert json.loads(cli("status", "sales", "--json").out)["schedule"] == "calculated"
