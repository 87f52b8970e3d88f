"""Queries are checked and shown with the rights of the role that would own the table, and no others."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.interfaces.http import models

pytestmark = pytest.mark.every_postgres

TOTALS = "select region, sum(amount) as total from orders group by region"


def validated(answer) -> models.Validation:
    assert answer.status_code == 200, answer.text
    return models.Validation.model_validate(answer.json())


@pytest.fixture
def member(admin, database):
    """The role of the server is a member of the application's role."""
    admin.execute("grant app to trickle")
    yield
    admin.execute("revoke app from trickle")


def test_a_query_is_described_with_some_of_its_rows(api, orders, member):
    found = validated(api.post("/validate", {"query": TOTALS, "owner": "app"}))
    assert (found.effective_mode, found.sources, found.missing_grants) == (
        "DIFFERENTIAL",
        ["public.orders"],
        [],
    )
    assert [(column.name, column.type) for column in found.columns] == [
        ("region", "text"),
        ("total", "bigint"),
    ]
    assert sorted(found.rows or []) == [["north", "10"], ["south", "5"]]


def test_at_most_ten_rows_are_shown(api, orders, member):
    query = "select o.id, n from orders o, generate_series(1, 100) n"
    assert len(validated(api.post("/validate", {"query": query, "owner": "app"})).rows or []) == 10


def test_rows_can_be_left_out(api, orders, member):
    body = {"query": TOTALS, "owner": "app", "with_rows": False}
    assert validated(api.post("/validate", body)).rows is None


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("select regio from orders", 8),
        ("select region\nfrom orders\nwhere amount >", None),
        ("select * from nowhere", 15),
    ],
)
@pytest.mark.parametrize("owner", ["app", None])
def test_a_mistake_has_its_position_in_the_query(api, orders, member, query, position, owner):
    answer = api.post("/validate", {"query": query, "owner": owner})
    problem = answer.json()
    assert (answer.status_code in (404, 422), problem["position"]) == (True, position or len(query) + 1)


def test_a_query_that_cannot_be_followed_says_why(api, orders, member):
    body = {"query": "select random() from orders", "owner": "app", "refresh_mode": "DIFFERENTIAL"}
    answer = api.post("/validate", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "PGT-P004")


def test_missing_privileges_are_grants(api, source, admin, member):
    source("hidden(id int primary key)", rows=[(1,)])
    admin.execute("alter table hidden owner to postgres")
    admin.execute("revoke all on hidden from app, trickle")
    answer = api.post("/validate", {"query": "select * from hidden", "owner": "app"})
    assert answer.status_code in (200, 403), answer.text
    assert "grant select on public.hidden to app" in answer.text


def test_only_a_role_of_which_the_server_is_a_member_can_be_the_owner(api, orders):
    for path, body in (
        ("/validate", {"query": TOTALS, "owner": "app"}),
        ("/tables", {"name": "t", "query": TOTALS, "owner": "app"}),
        ("/tables", {"name": "t", "query": TOTALS, "owner": "postgres"}),
    ):
        answer = api.post(path, body)
        assert (answer.status_code, answer.json()["code"]) == (403, "PGT-A002"), answer.text
    answer = api.post("/validate", {"query": TOTALS, "owner": "nobody there"})
    assert answer.status_code == 422


def test_a_slow_query_is_valid_but_shows_no_rows(api, orders, member, monkeypatch):
    monkeypatch.setattr("pgtrickle.commands.query_rows.query_rows.__defaults__", (None, 10, 0.05))
    query = "select count(*) from generate_series(1, 10000000) a, generate_series(1, 1000) b"
    found = validated(api.post("/validate", {"query": query, "owner": "app"}))
    assert (found.rows, found.rows_error) == (None, "the query takes too long to show rows of it here")


def test_an_error_of_a_row_is_told_instead_of_rows(api, orders, member):
    found = validated(api.post("/validate", {"query": "select 1 / (id - 1) from orders", "owner": "app"}))
    assert (found.rows, found.rows_error) == (None, "division by zero")


def test_the_owner_of_a_new_stream_table_is_the_one_that_was_asked_for(api, orders, member):
    made = api.post("/tables", {"name": "totals", "query": TOTALS, "owner": "app", "schedule": "7s"})
    assert (made.status_code, made.json()["owner"], made.json()["schedule"]) == (201, "app", "7s")
    changed = api.send("PATCH", "/tables/totals", json={"query": TOTALS + " having true"})
    assert changed.status_code == 200, changed.text
    refused = api.send("PATCH", "/tables/totals", json={"query": "select nope from orders"})
    assert (refused.status_code, refused.json()["position"]) == (422, 8)


def test_a_differential_query_is_refused_before_it_is_created(api, orders, member):
    body = {"name": "t", "query": "select now() from orders", "owner": "app", "refresh_mode": "DIFFERENTIAL"}
    answer = api.post("/tables", {**body, "query": "select region from orders tablesample system (1)"})
    assert answer.status_code == 422
    assert api.get("/overview").json()["tables"] == []


ATTACK = """
create function spy(v int) returns boolean language plpgsql immutable as $$
begin
    begin
        perform set_config('role', 'none', true);
    exception when others then null;
    end;
    begin
        execute 'set role none';
    exception when others then null;
    end;
    begin
        execute 'set session authorization default';
    exception when others then null;
    end;
    perform count(*) from secrets;
    raise exception 'SEEN as %', current_user;
exception when insufficient_privilege then
    return true;
end $$;
create domain trap as int check (spy(value));
grant usage on type trap to public;
"""


@pytest.fixture
def trap(admin, app, connection, member):
    """Code of the application that PostgreSQL runs while it parses, and that tries to become the server."""
    admin.execute("create table secrets(word text); alter table secrets owner to trickle")
    admin.execute("insert into secrets values ('hush')")
    app.execute(ATTACK)
    app.commit()


@pytest.mark.parametrize(
    "query",
    [
        "select '1'::trap as one from orders",
        "select id from orders where spy(1)",
        "select id from orders where id = (select count(*) from secrets)",
        "select set_config('role', 'none', true) from orders",
        "select id, (1::trap) from orders",
        "select array['1'::trap] from orders",
    ],
)
@pytest.mark.parametrize("path", ["/validate", "/tables"])
def test_code_of_the_owner_gets_no_more_than_the_rights_of_the_owner(api, orders, trap, query, path):
    body = {"query": query, "owner": "app", **({"name": "t"} if path == "/tables" else {})}
    answer = api.post(path, body)
    assert "SEEN" not in answer.text
    assert "hush" not in answer.text
    assert answer.status_code in (403, 422), answer.text
    assert api.get("/overview").json()["tables"] == []


def test_altering_runs_code_of_the_owner_only_with_the_rights_of_the_owner(api, orders, trap):
    assert api.post("/tables", {"name": "t", "query": TOTALS, "owner": "app"}).status_code == 201
    for query in ("select '1'::trap::int::text as region, 1::bigint as total from orders",):
        answer = api.send("PATCH", "/tables/t", json={"query": query})
        assert "SEEN" not in answer.text
        assert answer.status_code in (403, 422), answer.text


def test_the_trap_would_work_after_a_plain_set_role(connection, orders, trap):
    connection.execute("set role app")
    with pytest.raises(psycopg.errors.RaiseException, match="SEEN as trickle"):
        connection.execute("select '1'::trap from orders")
    connection.rollback()


def test_nothing_that_is_checked_is_kept(api, orders, member, admin):
    def kept():
        return admin.execute(
            "select (select count(*) from pg_class), (select count(*) from pg_proc),"
            " (select count(*) from pgtrickle.pgt_stream_tables)"
        ).fetchall()

    validated(api.post("/validate", {"query": TOTALS, "owner": "app"}))
    before = kept()
    validated(api.post("/validate", {"query": TOTALS, "owner": "app"}))
    assert kept() == before
