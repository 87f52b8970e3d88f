"""What people read: whole screens, as they stand without a terminal."""

from __future__ import annotations

import pytest

from pgtrickle import __version__

QUERY = "select region, sum(amount) as total from orders group by region"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10)])


def test_the_first_screens_say_what_to_do_next(cli):
    nothing = 'No stream tables yet. Create one: pgtrickle create NAME --query "select …"\n'
    assert cli("list").out == nothing
    assert cli("status").out == nothing
    assert cli("install", role="trickle").out.endswith("then `pgtrickle run`.\n")


@pytest.mark.usefixtures("orders")
def test_a_new_stream_table_says_how_it_gets_its_rows(cli):
    assert cli("create", "sales", "-q", QUERY).out == (
        "Created stream table public.sales. It is empty until it is loaded.\n"
        "No sidecar is running: start `pgtrickle run`, or load it with `pgtrickle refresh public.sales`.\n"
    )
    assert _words(cli("list").out) == [
        "stream table status schedule mode reads owner",
        "public.sales INITIALIZING calculated AUTO public.orders app",
        "No sidecar serves this database; none has been seen yet. Start one with `pgtrickle run`.",
    ]
    assert cli("history", "sales").out.startswith("Not refreshed yet.")


@pytest.mark.usefixtures("shared_spark")
def test_a_refresh_says_what_it_did_and_why(cli, orders):
    cli("create", "sales", "-q", QUERY)
    loaded = cli("refresh", "sales", role="trickle").out
    assert loaded.startswith("Refreshed public.sales: REINITIALIZE, +1 −0 rows, ")
    orders.change("insert into orders values (2, 'south', 5)")
    assert cli("refresh", "sales", role="trickle").out.startswith(
        "Refreshed public.sales: DIFFERENTIAL, +1 −0"
    )
    newest, oldest = _words(cli("history", "sales").out)[1:]
    assert ("DIFFERENTIAL 1 0" in newest, "REINITIALIZE 1 0" in oldest) == (True, True)
    assert cli("verify", role="trickle").out.startswith("public.sales equals its query: 2 rows (")


@pytest.mark.usefixtures("orders", "shared_spark")
def test_full_is_never_silent(cli):
    cli("create", "ranked", "-q", "select id, now() as at from orders")
    cli("refresh", "ranked", role="trickle")
    assert "AUTO → FULL" in cli("list").out
    assert "public.ranked: FULL because " in cli("status").out
    assert "why FULL" in cli("status", "ranked").out
    assert cli("explain", "ranked", role="trickle").exit_code == 0


@pytest.mark.usefixtures("orders", "shared_spark")
@pytest.mark.diverges
def test_rows_that_differ_are_shown(cli, admin):
    cli("create", "sales", "-q", QUERY)
    cli("refresh", "sales", role="trickle")
    admin.execute("set pgtrickle.applying = on; update sales set total = 11")
    answer = cli("verify", "sales", role="trickle")
    assert answer.exit_code == 5
    assert answer.err.startswith("error PGT-R002: ")
    assert ("11" in answer.err, "10" in answer.err) == (True, True)


def test_the_version_is_told(cli):
    assert cli("--version").out == f"pgtrickle {__version__}\n"


@pytest.mark.parametrize("command", ["install", "create", "run", "refresh", "verify", "drop", "uninstall"])
def test_every_command_explains_itself(command, cli):
    answer = cli(command, "--help")
    assert (answer.exit_code, "--dsn" in answer.out, "--json" in answer.out) == (0, True, True)


def _words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip(" ─")]
