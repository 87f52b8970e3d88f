"""`pgtrickle sql`: statements run through the same commands as the rest of the CLI."""

from __future__ import annotations

import json

import pytest

ORDERS = "select id, amount from orders"


@pytest.fixture(autouse=True)
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(1, 10)])


def shown(cli, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(cli("status", name, "--json").out)
    return found


def test_a_stream_table_lives_and_dies_by_statements(cli, app):
    options = "schedule = '5s', tier = warm, pooler_compatibility_mode = true"
    create = f"CREATE STREAM TABLE s WITH ({options}) AS {ORDERS}"
    assert cli("sql", create).out == "Created stream table s.\n"
    row = app.execute(
        "select schedule, refresh_tier, pooler_compatibility_mode from pgtrickle.stream_tables_info"
    )
    assert row.fetchone() == ("5s", "warm", True)
    assert cli("sql", f"create stream table if not exists s with (tier = cold) as {ORDERS}").out == (
        "Stream table s already exists and was not changed.\n"
    )
    assert shown(cli, "s")["tier"] == "warm"
    assert cli("sql", "alter stream table s set (schedule = '@hourly', refresh_mode = FULL)").exit_code == 0
    assert (shown(cli, "s")["schedule"], shown(cli, "s")["refresh_mode"]) == ("@hourly", "FULL")
    assert (
        cli("sql", "create or replace stream table s as select id, amount, 1 as one from orders").exit_code
        == 0
    )
    assert "one" in str(shown(cli, "s")["query"])
    assert cli("sql", "drop stream table if exists s; drop stream table if exists s").out == (
        "Dropped stream table public.s.\nThere is no stream table s. Nothing was dropped.\n"
    )


@pytest.mark.usefixtures("shared_spark")
def test_a_file_has_several_statements_and_refreshes_too(cli, tmp_path, admin):
    admin.execute("grant select on orders to trickle")
    script = tmp_path / "tables.sql"
    script.write_text(
        f"-- tables\ncreate stream table a as {ORDERS};\nrefresh stream table a;\nrefresh stream table a;\n"
    )
    admin.execute("grant create on schema public to trickle")
    answer = cli("sql", "-f", str(script), "--json", role="trickle")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert [(line["statement"], line["name"]) for line in lines] == [
        ("create", "a"), ("refresh", "a"), ("refresh", "a")
    ]  # fmt: skip
    assert lines[1]["done"].startswith("Refreshed public.a: REINITIALIZE, +1 −0 rows")


def test_nothing_runs_if_one_statement_cannot_be_read(cli):
    refused = cli("sql", f"create stream table s as {ORDERS}; drop stream tabel s")
    assert (refused.exit_code, "PGT-S008" in refused.err) == (2, True)
    assert "expected TABLE, found 'tabel'" in " ".join(refused.err.split())
    assert cli("status", "s").exit_code == 2


def test_a_statement_that_fails_is_told_with_its_place_and_ends_it(cli):
    text = f"create stream table s as {ORDERS};\ncreate stream table s as {ORDERS};\ndrop stream table s"
    refused = cli("sql", text)
    assert (refused.exit_code, refused.out) == (2, "Created stream table s.\n")
    assert "line 2, column 1: public.s already exists" in " ".join(refused.err.split())
    assert cli("status", "s").exit_code == 0


def test_a_tier_that_cannot_be_given_leaves_no_table(cli):
    refused = cli("sql", "create stream table s with (tier = cold) as select nope from orders")
    assert refused.exit_code == 2
    assert cli("status", "s").exit_code == 2


def test_a_cascade_names_every_table_it_drops(cli):
    cli("sql", f"create stream table s as {ORDERS}; create stream table above as select count(*) as n from s")
    assert "cascade" in cli("sql", "drop stream table s").err
    assert cli("sql", "drop stream table s cascade").out == "Dropped stream tables public.above, public.s.\n"


@pytest.mark.parametrize("arguments", [(), ("drop stream table s", "-f", "-"), ("-f", "/no/such/file")])
def test_statements_come_from_one_place(cli, arguments):
    assert cli("sql", *arguments).exit_code == 2
