"""`pgtrickle adopt` and `pgtrickle advise`, and the same in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

import pgtrickle
from pgtrickle.commands.adopt import adopt, adoption_plan
from pgtrickle.commands.advise import advise
from pgtrickle.commands.statements import parameter_numbers, without_parameters
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.stream_table import RefreshMode
from tests.fixtures.databases import APP, TEMPLATE, Database, create_database, prepare
from tests.fixtures.servers import new_server

TOTALS = (
    "select c.name, sum(o.amount) as total from orders o join customers c on c.id = o.customer group by 1"
)

AVERAGES = "select customer, avg(amount) from orders where amount > 2 group by 1 having count(*) > 1"


@pytest.fixture
def shop(source, app):
    source("customers(id int primary key, name text)", rows=[(1, "ann"), (2, "bob")])
    source("orders(id int primary key, customer int, amount int)", rows=[(1, 1, 5), (2, 2, 7), (3, 1, 1)])
    app.execute(f"create materialized view totals as {TOTALS}")
    app.execute("create unique index totals_name on totals (name); analyze totals, orders, customers")
    return "totals"


@pytest.fixture
def dsn(database: Database) -> str:
    return database.dsn(APP)


def test_a_dry_run_shows_the_mode_the_reads_and_what_is_kept_and_changes_nothing(shop, cli, app, everything):
    app.execute("create view rich as select name from totals where total > 6")
    before = everything()
    answer = cli("adopt", "totals", "--dry-run")
    assert (answer.exit_code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "Materialized view public.totals, about 2 rows",
        "Refresh mode: DIFFERENTIAL (requested: AUTO)",
        "A refresh reads, if every source has changed:",
        *[line for line in answer.out.splitlines() if line.startswith("  public.")],
        "Kept:",
        "  index totals_name",
        "  view public.rich",
        "In the way: none",
        "Missing indexes:",
        "  create index on public.orders (customer);",
        "Missing grants: none",
        "Nothing was changed.",
    ]
    assert "  public.orders: the window of changes" in answer.out
    assert "  public.customers: lookup by" in answer.out
    assert everything() == before


def test_a_dry_run_names_what_is_in_the_way_and_fails(shop, cli, app):
    app.execute("create materialized view upper as select name from totals")
    answer = cli("adopt", "totals", "--dry-run", "--json")
    assert answer.exit_code == 2
    plan = json.loads(answer.out)
    assert plan["obstacles"] == ["materialized view public.upper (it would have to be created again)"]
    assert cli("adopt", "totals").exit_code == 2


def test_adopting_on_the_command_line_says_what_is_next(shop, cli, app):
    answer = cli("adopt", "totals", "--schedule", "5s", "--tier", "warm")
    assert answer.exit_code == 0
    assert answer.out.startswith("Materialized view public.totals is a stream table now, with the rows")
    found = app.execute("select relkind::text from pg_class where oid = 'totals'::regclass").fetchone()
    assert found == ("r",)
    again = cli("adopt", "totals")
    assert "PGT-S017" in again.err
    assert "It is a stream table already." in again.err


def test_python_adopts_too(shop, dsn):
    with pgtrickle.connect(dsn) as trickle:
        assert trickle.adoption_plan("totals").missing_indexes == (
            "create index on public.orders (customer)",
        )
        assert trickle.adopt_materialized_view("totals", "1s").schedule == "1s"


def test_differential_is_refused_for_a_query_that_cannot_be_followed(shop, dsn, app):
    app.execute("create materialized view ages as select id, now() as at from orders")
    with pytest.raises(UnsupportedQuery, match=r"now\(\)"):
        adopt(dsn, "ages", {"refresh_mode": "differential"})
    with pytest.raises(UnsupportedQuery):
        adoption_plan(dsn, "ages", "DIFFERENTIAL")
    plan = adoption_plan(dsn, "ages")
    assert plan.effective_mode is RefreshMode.FULL
    assert plan.reads == ("public.orders: whole table, in PostgreSQL",)


def test_advice_works_without_statistics_of_statements_and_says_so(shop, dsn, app, admin, cli, everything):
    app.execute("create materialized view ages as select id, now() as at from orders")
    app.execute("create materialized view moody as select id, random() as r from orders")
    admin.execute("create materialized view foreign_one as select 1 as one")
    before = everything()
    advice = advise(dsn)
    assert [(one.name, one.effective_mode and one.effective_mode.value) for one in advice.candidates][:2] == [
        ("public.totals", "DIFFERENTIAL"),
        ("public.ages", "FULL"),
    ]
    assert advice.candidates[2].effective_mode is None
    assert "random()" in advice.candidates[2].reason
    assert advice.candidates[0].saved_ms_per_hour is None
    assert "no REFRESH was counted" in advice.candidates[0].basis
    assert [note.split(",")[0] for note in advice.notes] == [
        "pg_stat_statements is not installed",
        "1 materialized views belong to other roles and are not analysed",
    ]
    answer = cli("advise")
    assert answer.out.startswith("1. materialized view public.totals\n   Refresh mode: DIFFERENTIAL\n")
    assert "   Next: `pgtrickle adopt public.totals`\n" in answer.out
    assert json.loads(cli("advise", "--json").out)["candidates"][0]["name"] == "public.totals"
    assert everything() == before


def test_queries_of_other_roles_are_never_planned(shop, database, admin):
    """Planning evaluates functions, and an owner of a materialized view chooses them."""
    with database.connect(APP, autocommit=True) as app:
        app.execute("create sequence ran")
        app.execute(
            "create function trap(n int) returns int immutable language plpgsql as"
            " $$ begin perform nextval('public.ran'); return n; end $$"
        )
        app.execute("create materialized view bait as select id from orders where id > trap(1)")
        app.execute("select setval('ran', 1, false)")
    names = {one.name for one in advise(database.dsn("postgres")).candidates}
    assert "public.bait" not in names
    assert admin.execute("select is_called from ran").fetchone() == (False,)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("select $1, '$2', \"$3\", $10 -- $4", (1, 10)),
        ("select $a$ $1 $a$, $2 /* $5 */", (2,)),
        ("select 'it''s $1' || $3", (3,)),
    ],
)
def test_parameters_are_told_from_texts_that_look_like_them(text, numbers):
    assert parameter_numbers(text) == numbers


def test_parameters_get_the_types_that_postgresql_finds(shop, app):
    query = "select id from orders where amount > $1 and id::text = $2 limit $3"
    text = without_parameters(app, query)
    assert text == (
        "select id from orders where amount > (null::integer) and id::text = (null::text)"
        " limit (null::bigint)"
    )
    app.execute(f"explain {text}")
    with pytest.raises(psycopg.Error):
        without_parameters(app, "select interval $1")
    assert app.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)


@pytest.fixture
def counted() -> Iterator[Database]:
    """A database whose statements are counted; the embedded server lacks the library."""
    with new_server(15, shared_preload_libraries="pg_stat_statements") as server:
        prepare(server)
        database = create_database(server, "counted", TEMPLATE)
        with database.connect("postgres", autocommit=True) as admin:
            admin.execute('create schema "My Stats"; create extension pg_stat_statements schema "My Stats"')
            admin.execute('grant usage on schema "My Stats" to public')
        yield database


@pytest.mark.own_server
def test_statements_and_refreshes_that_were_counted_are_ranked(counted):
    with counted.connect(APP, autocommit=True) as app:
        app.execute("create table orders(id int primary key, customer int, amount int)")
        app.execute("grant select, trigger on orders to trickle")
        app.execute("insert into orders select n, n % 100, n % 7 from generate_series(1, 20000) n")
        app.execute(
            'create materialized view "Big One" as select customer, sum(amount) as s from orders group by 1'
        )
        app.execute("create materialized view idle as select id from orders where id < 10")
        app.execute("analyze")
        for _ in range(3):
            app.execute('refresh materialized view "Big One"')
            app.execute(AVERAGES)
            app.execute("select id + 1 from orders where id = 5 -- one row")
    with counted.connect("postgres", autocommit=True) as admin:
        admin.execute("select secret from (values (1)) as hidden(secret)")
    advice = advise(counted.dsn(APP))
    assert [note for note in advice.notes if "pg_stat_statements" in note] == []
    by_name = {one.name: one for one in advice.candidates}
    big, idle = by_name['public."Big One"'], by_name["public.idle"]
    assert big.saved_ms_per_hour is not None
    assert big.saved_ms_per_hour > 0
    assert "3 REFRESH" in big.basis
    assert idle.saved_ms_per_hour is None
    statement = next(one for one in advice.candidates if "avg(amount)" in one.query)
    assert (statement.kind, statement.effective_mode) == ("statement", RefreshMode.DIFFERENTIAL)
    assert "$1" in statement.next_step
    assert "3 calls" in statement.basis
    assert not any("secret" in one.query for one in advice.candidates)
    assert advice.candidates.index(statement) < advice.candidates.index(idle)
