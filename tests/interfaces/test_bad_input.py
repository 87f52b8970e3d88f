"""Bad input gets an error that says what is wrong and what to do, an exit code, and changes nothing."""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.fixtures.databases import TRICKLE

ORDERS = "select id, amount from orders"

REFUSED = {
    "a syntax error": (["create", "new", "-q", "selec 1"], "PGT-P003", "syntax error"),
    "an unknown column": (["create", "new", "-q", "select nope from orders"], "PGT-P003", '"nope"'),
    "an unknown table": (["create", "new", "-q", "select 1 from nope"], "PGT-S022", '"nope"'),
    "two statements": (["create", "new", "-q", "select 1 as a; select 2"], "PGT-P003", "one SELECT"),
    "a statement that is no query": (["create", "new", "-q", "drop table orders"], "PGT-P003", "one SELECT"),
    "a volatile function": (["create", "new", "-q", "select random() r from orders"], "PGT-P004", "random()"),
    "a source without privileges": (["create", "new", "-q", "select * from hidden"], "PGT-A002", "hidden"),
    "a source we may not follow": (["create", "new", "-q", "select * from unfollowed"], "PGT-A002", "grant"),
    "a system catalog": (["create", "new", "-q", "select relname from pg_class"], "PGT-P004", "pg_class"),
    "a name that exists": (["create", "orders", "-q", ORDERS], "PGT-S014", "already exists"),
    "a name that needs quotes": (["create", 'x"; drop table orders; --', "-q", ORDERS], "PGT-S013", "quotes"),
    "a bad schedule": (["create", "new", "-q", ORDERS, "-s", "often"], "PGT-S003", "'often'"),
    "a bad cron schedule": (["create", "new", "-q", ORDERS, "-s", "*/5 25 * * *"], "PGT-S003", "hour '25'"),
    "a bad mode": (["create", "new", "-q", ORDERS, "-m", "QUICK"], "PGT-S011", "'QUICK'"),
    "an empty query": (["create", "new", "-q", " ; "], "PGT-P003", "empty"),
    "no query": (["create", "new"], "PGT-S020", "--query-file"),
    "two queries": (["create", "new", "-q", ORDERS, "-f", "-"], "PGT-S020", "exclude each other"),
    "a file that is not there": (["create", "new", "-f", "/no/such/file"], "PGT-S020", "/no/such/file"),
    "nothing to alter": (["alter", "kept"], "PGT-S020", "--schedule"),
    "a column that is read": (["alter", "kept", "-q", "select 1 as y from orders"], "PGT-S016", "reader"),
    "adopt of a table": (["adopt", "orders"], "PGT-S017", "materialized view"),
    "adopt of an unknown name": (["adopt", "nope"], "PGT-S022", "nope"),
    "a bad status": (["alter", "kept", "--status", "GONE"], "PGT-S011", "'GONE'"),
    "drop of what is no stream table": (["drop", "orders"], "PGT-S002", "pgtrickle status"),
    "alter of an unknown name": (["alter", "nope", "-s", "1s"], "PGT-S002", "nope"),
    "refresh of an unknown name": (["refresh", "nope"], "PGT-S002", "nope"),
    "verify of an unknown name": (["verify", "nope"], "PGT-S002", "nope"),
    "explain of an unknown name": (["explain", "nope"], "PGT-S002", "nope"),
    "status of an unknown name": (["status", "nope"], "PGT-S002", "nope"),
    "history of an unknown name": (["history", "nope"], "PGT-S002", "nope"),
    "history of a misspelt name": (["history", "public.kpet"], "PGT-S002", "Did you mean public.kept?"),
    "a misspelt command": (["statsu"], "PGT-S020", "Did you mean 'status'? Hint: "),
    "a schema that is not there": (["create", "nowhere.x", "-q", ORDERS], "PGT-S015", "does not exist"),
    "resume of an unknown name": (["resume", "nope"], "PGT-S002", "nope"),
    "a name that is none": (["status", 'a.b.c."'], "PGT-S013", "schema.name"),
    "an unknown command": (["frobnicate"], "PGT-S020", "frobnicate"),
    "an unknown option": (["list", "--frobnicate"], "PGT-S020", "--frobnicate"),
    "an install by another role": (["install"], "PGT-A002", f"Connect as {TRICKLE}"),
    "a drop of everything, unasked": (["uninstall", "--drop-tables"], "PGT-S020", "--yes"),
}


@pytest.fixture
def shop(source, admin, app, cli):
    """Tables that may be followed, and some that may not."""
    source("orders(id int primary key, amount numeric)", rows=[(1, 10)])
    admin.execute("create table hidden (a int)")
    admin.execute("create table unfollowed (a int); grant select on unfollowed to app")
    assert cli("create", "kept", "-q", ORDERS).exit_code == 0
    app.execute("create view reader as select amount from kept")


@pytest.mark.usefixtures("shop")
def test_each_is_refused_with_its_code_and_changes_nothing(cli, everything):
    before = everything()
    wrong = {}
    # in one database: to make a new one for each would take longer than all of them
    for what, (arguments, code, says) in REFUSED.items():
        answer = cli(*arguments)
        is_told = answer.err.startswith(f"error {code}: ") and says in answer.err and answer.out == ""
        if not (answer.exit_code == 2 and is_told and ("Hint: " in answer.err or "\nLINE 1: " in answer.err)):
            wrong[what] = answer
        if everything() != before:
            wrong[what] = "changed something"
    assert wrong == {}


@pytest.mark.usefixtures("shop")
def test_a_mistake_in_a_query_is_shown_with_its_line_and_a_caret(cli):
    answer = cli("create", "new", "-q", "select id, sum(amount)\nfrom orders\ngroup bye id")
    assert answer.err == (
        'error PGT-P003: syntax error at or near "bye".\nLINE 3: group bye id\n              ^\n'
    )
    answer = cli("alter", "kept", "-q", "select id, amuont from orders")
    assert answer.err.splitlines()[:3] == [
        'error PGT-P003: column "amuont" does not exist.',
        "LINE 1: select id, amuont from orders",
        "                   ^",
    ]


@pytest.mark.usefixtures("shop")
def test_the_detail_of_an_error_is_shown(cli):
    lines = cli("alter", "kept", "-q", "select id, '{'::json as amount from orders").err.splitlines()
    assert lines[0].endswith("invalid input syntax for type json.")
    assert "Detail: The input string ended unexpectedly." in lines


@pytest.mark.usefixtures("shop")
def test_an_error_can_be_read_as_json(cli):
    answer = cli("create", "new", "-q", "select nope from orders", "--json")
    assert (answer.exit_code, answer.out) == (2, "")
    assert json.loads(answer.err) == {
        "code": "PGT-P003",
        "sqlstate": "42703",
        "message": 'column "nope" does not exist',
        "detail": None,
        "hint": None,
        "excerpt": "LINE 1: select nope from orders\n               ^",
    }
    usage = json.loads(cli("list", "--json", "--frobnicate").err)
    assert (usage["code"], usage["hint"]) == ("PGT-S020", "`pgtrickle list --help` shows the usage")


@pytest.mark.usefixtures("shop")
def test_a_temporary_table_is_refused(cli, database, everything):
    before = everything()
    # one session: a temporary table is seen by nobody else
    with database.connect("app") as session:
        session.execute("create temporary table mine (a int)")
        with pytest.raises(psycopg.Error, match="temporary table"):
            session.execute("select pgtrickle.create_stream_table('new', 'select a from mine')")
    assert everything() == before


@pytest.mark.usefixtures("shop")
def test_a_direct_write_is_refused_with_a_hint(app):
    with pytest.raises(psycopg.Error, match="Change its sources"):
        app.execute("insert into kept values (2, 20)")


@pytest.mark.usefixtures("shop")
def test_a_stream_table_that_others_read_is_dropped_only_with_them(cli):
    assert cli("create", "above", "-q", "select count(*) as n from kept").exit_code == 0
    answer = cli("drop", "kept")
    assert (answer.exit_code, "public.above" in answer.err, "--cascade" in answer.err) == (2, True, True)
    assert cli("drop", "kept", "--cascade").out.splitlines() == [
        "Dropped stream table public.above.",
        "Dropped stream table public.kept.",
    ]


def test_a_query_may_come_from_a_file_or_from_standard_input(cli, source, tmp_path, monkeypatch):
    source("orders(id int primary key, amount numeric)")
    path = tmp_path / "query.sql"
    path.write_text(f"{ORDERS} where amount > 1;\n")
    assert cli("create", "from_file", "--query-file", str(path)).exit_code == 0
    with path.open() as text:
        monkeypatch.setattr("sys.stdin", text)
        assert cli("create", "from_input", "--query-file", "-").exit_code == 0
