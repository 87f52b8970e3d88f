"""Bad input has one line that says what is wrong and what to do, an exit code, and changes nothing."""

from __future__ import annotations

import psycopg
import pytest

from tests.fixtures.databases import TRICKLE

ORDERS = "select id, amount from orders"

REFUSED = {
    "a syntax error": (["create", "new", "-q", "selec 1"], "PGT-S001", "syntax error"),
    "an unknown column": (["create", "new", "-q", "select nope from orders"], "PGT-S001", '"nope"'),
    "an unknown table": (["create", "new", "-q", "select 1 from nope"], "PGT-S001", '"nope"'),
    "two statements": (["create", "new", "-q", "select 1 as a; select 2"], "PGT-S001", "one SELECT"),
    "a statement that is no query": (["create", "new", "-q", "drop table orders"], "PGT-S001", "one SELECT"),
    "a volatile function": (["create", "new", "-q", "select random() r from orders"], "PGT-S001", "random()"),
    "a source without privileges": (["create", "new", "-q", "select * from hidden"], "PGT-S001", "hidden"),
    "a source we may not follow": (["create", "new", "-q", "select * from unfollowed"], "PGT-S001", "grant"),
    "a system catalog": (["create", "new", "-q", "select relname from pg_class"], "PGT-S001", "pg_class"),
    "a name that exists": (["create", "orders", "-q", ORDERS], "PGT-S001", "exists already"),
    "a name that needs quotes": (["create", 'x"; drop table orders; --', "-q", ORDERS], "PGT-S001", "quotes"),
    "a bad schedule": (["create", "new", "-q", ORDERS, "-s", "often"], "PGT-S001", "'often'"),
    "a bad cron schedule": (["create", "new", "-q", ORDERS, "-s", "*/5 25 * * *"], "PGT-S001", "hour '25'"),
    "a bad mode": (["create", "new", "-q", ORDERS, "-m", "QUICK"], "PGT-S001", "'QUICK'"),
    "an empty query": (["create", "new", "-q", " ; "], "PGT-S001", "empty"),
    "no query": (["create", "new"], "error", "--query-file"),
    "two queries": (["create", "new", "-q", ORDERS, "-f", "-"], "error", "not both"),
    "a file that is not there": (["create", "new", "-f", "/no/such/file"], "error", "/no/such/file"),
    "nothing to alter": (["alter", "kept"], "error", "--schedule"),
    "other columns": (["alter", "kept", "-q", "select 'x' as y from orders"], "PGT-S001", "columns"),
    "a bad status": (["alter", "kept", "--status", "GONE"], "PGT-S001", "'GONE'"),
    "drop of what is no stream table": (["drop", "orders"], "PGT-S002", "pgtrickle list"),
    "alter of an unknown name": (["alter", "nope", "-s", "1s"], "PGT-S002", "nope"),
    "refresh of an unknown name": (["refresh", "nope"], "PGT-S002", "nope"),
    "verify of an unknown name": (["verify", "nope"], "PGT-S002", "nope"),
    "explain of an unknown name": (["explain", "nope"], "PGT-S002", "nope"),
    "status of an unknown name": (["status", "nope"], "PGT-S002", "nope"),
    "history of an unknown name": (["history", "nope"], "PGT-S002", "nope"),
    "resume of an unknown name": (["resume", "nope"], "PGT-S002", "nope"),
    "a name that is none": (["status", 'a.b.c."'], "PGT-S001", "schema.name"),
    "an unknown command": (["frobnicate"], "error", "frobnicate"),
    "an unknown option": (["list", "--frobnicate"], "error", "--frobnicate"),
    "an install by another role": (["install"], "PGT-S001", f"connect as {TRICKLE}"),
    "a drop of everything, unasked": (["uninstall", "--drop-tables"], "error", "--yes"),
}


@pytest.fixture
def shop(source, admin, cli):
    """Tables that may be followed, and some that may not."""
    source("orders(id int primary key, amount numeric)", rows=[(1, 10)])
    admin.execute("create table hidden (a int)")
    admin.execute("create table unfollowed (a int); grant select on unfollowed to app")
    assert cli("create", "kept", "-q", ORDERS).exit_code == 0


@pytest.mark.usefixtures("shop")
def test_each_is_refused_in_one_line_and_changes_nothing(cli, everything):
    before = everything()
    wrong = {}
    # in one database: to make a new one for each would take longer than all of them
    for what, (arguments, code, says) in REFUSED.items():
        answer = cli(*arguments)
        label = "error: " if code == "error" else f"error {code}: "
        is_one_line = answer.err.count("\n") == 1 and answer.err.startswith(label) and answer.out == ""
        if not (answer.exit_code == 2 and is_one_line and says in answer.err and "Hint: " in answer.err):
            wrong[what] = answer
        if everything() != before:
            wrong[what] = "changed something"
    assert wrong == {}


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
    assert (answer.exit_code, "public.above" in answer.err, "cascade" in answer.err) == (2, True, True)
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
