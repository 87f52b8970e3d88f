"""Names with quotes, capitals and worse mean what they mean in SQL, and never become SQL themselves."""

from __future__ import annotations

import json

import pytest

from pgtrickle.model.names import RelationName

NAMES = ["Sales", 'x"; drop table orders; --', "två ord", "select", "%s", "[bold]", "a.b", "{}"]


@pytest.mark.slow
def test_a_stream_table_may_have_any_name(cli, source, app):
    source("orders(id int primary key)", rows=[(1,)])
    for name in (RelationName("public", name) for name in NAMES):
        assert cli("create", name.sql, "-q", "select id from orders").exit_code == 0
        assert [table["name"] for table in json.loads(cli("list", "--json").out)] == [str(name)]
        assert str(name) in cli("list").out
        assert str(name) in cli("status", name.sql).out
        assert cli("alter", name.sql, "-s", "5m").exit_code == 0
        assert json.loads(cli("status", name.sql, "--json").out)["schedule"] == "5m"
        assert cli("drop", name.sql).exit_code == 0
    assert app.execute("select id from orders").fetchall() == [(1,)]


def test_a_source_may_have_any_name(cli, source):
    table = source('"y""; drop table z; --"("Col" int primary key, "a""b" text)')
    answer = cli("create", "followed", "-q", f'select "Col", "a""b" from {table.name}')
    assert answer.exit_code == 0
    assert json.loads(cli("status", "followed", "--json").out)["sources"] == [f"public.{table.name}"]


def test_a_name_without_quotes_is_folded_as_sql_folds_it(cli, source):
    source("orders(id int primary key)")
    assert cli("create", "SALES", "-q", "select id from orders").exit_code == 0
    assert json.loads(cli("status", "sales", "--json").out)["name"] == "public.sales"
