"""A file of definitions: what export writes, apply makes true, all or nothing, and only once."""

from __future__ import annotations

import json

import psycopg
import pytest

import pgtrickle
from pgtrickle.commands.definitions import PlanAction, PlannedChange, apply, export, plan
from pgtrickle.interfaces.cli.application import run
from pgtrickle.interfaces.ddl.definition_files import read_definitions
from pgtrickle.model.errors import (
    BadQuery,
    BadStatement,
    NameTaken,
    PgTrickleError,
    StillInUse,
    WrongState,
)
from tests.fixtures.databases import APP, TRICKLE

CREATE, ALTER, DROP, NONE = PlanAction.CREATE, PlanAction.ALTER, PlanAction.DROP, PlanAction.NONE

FILE = """\
-- sales by region, and what is left of them
CREATE STREAM TABLE totals WITH (schedule = '5s', keep_changes = '1d') AS
select region, sum(amount) as total from sums group by region;

CREATE STREAM TABLE sums AS
select region, id, sum(amount) as amount from orders group by region, id;
"""


ODD_NAME = '"Odd ""Schema"""."T; able"'
ODD_QUERY = """select id, region || ';' as "semi;colon", e'a\\nb' as "it's" from orders
    where region <> 'it''s; $x$'"""


@pytest.fixture
def owner(source, database, way) -> str:
    """The address of the owner of a table of orders."""
    source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)])
    return str(way(database.server, database.name, APP))


def done(dsn: str, text: str, set_name: str | None = None) -> list[tuple[PlanAction, str, tuple[str, ...]]]:
    file = read_definitions(text)
    planned = plan(dsn, file, set_name)
    applied = apply(dsn, file, set_name, expected=planned)
    assert applied == planned
    return [(change.action, change.name, change.changes) for change in applied]


def names(app: psycopg.Connection) -> list[str]:
    return [name for (name,) in app.execute("select name from pgtrickle.pgt_status() order by name")]


def failure(dsn: str, text: str, set_name: str | None = None) -> PgTrickleError:
    with pytest.raises(PgTrickleError) as planned:
        plan(dsn, read_definitions(text), set_name)
    with pytest.raises(type(planned.value)) as applied:
        apply(dsn, read_definitions(text), set_name)
    assert applied.value.message == planned.value.message
    return applied.value


@pytest.mark.light
@pytest.mark.every_postgres
def test_a_file_is_applied_in_dependency_order_and_only_once(owner, app, admin):
    assert done(owner, FILE) == [(CREATE, "public.totals", ()), (CREATE, "public.sums", ())]
    assert names(app) == ["public.sums", "public.totals"]
    versions = "select pgt_id, xmin::text from pgtrickle.pgt_stream_tables order by 1"
    before = admin.execute(versions).fetchall()
    assert done(owner, FILE) == [(NONE, "public.totals", ()), (NONE, "public.sums", ())]
    assert admin.execute(versions).fetchall() == before


@pytest.mark.light
def test_what_is_exported_creates_the_same_again(owner, app, admin):
    admin.execute('create schema "Odd ""Schema""" authorization app')
    app.execute('grant usage on schema "Odd ""Schema""" to trickle')
    app.execute(
        "select pgtrickle.create_stream_table(%s, %s, '1h30m', 'full', false, 'none', 'fastest', 'trigger',"
        " false, true, 'cold', '90s', 'stop', '7d 500 rows')",
        (ODD_NAME, ODD_QUERY),
    )
    app.execute("select pgtrickle.create_stream_table('plain', 'select count(*) as n from orders')")
    text = export(owner)
    assert text == "\n".join(
        app.execute("select pgtrickle.export_definition(%s)", (name,)).fetchall()[0][0]
        for name in (ODD_NAME, "plain")
    )
    assert export(owner, ["plain"]) == (
        "CREATE STREAM TABLE public.plain AS\nSELECT count(*) AS n\n   FROM public.orders;\n"
    )
    rows = (
        "select pgt_schema, pgt_name, defining_query, schedule, refresh_mode, initialize,"
        " diamond_consistency, diamond_schedule_policy, cdc_mode, pooler_compatibility_mode, refresh_tier,"
        " keep_changes from pgtrickle.pgt_stream_tables order by 1, 2"
    )
    before = app.execute(rows).fetchall()
    assert {action for action, *_ in done(owner, text)} == {NONE}
    for name in names(app):
        app.execute("select pgtrickle.drop_stream_table(%s)", (name,))
    assert {action for action, *_ in done(owner, text)} == {CREATE}
    assert app.execute(rows).fetchall() == before
    assert export(owner) == text


def test_what_differs_is_altered_and_what_is_left_out_gets_its_default(owner, app):
    done(owner, FILE)
    app.execute(
        "select pgtrickle.alter_stream_table('sums', tier => 'cold', refresh_timeout => '1m',"
        " diamond_schedule_policy => 'slowest', diamond_consistency => 'none')"
    )
    text = FILE.replace("'5s', keep_changes = '1d'", "'10s'").replace(
        "from orders", "from orders where id > 0"
    )
    changes = {name: changes for _, name, changes in done(owner, text)}
    assert changes["public.totals"] == ("schedule", "keep_changes")
    assert set(changes["public.sums"]) == {
        "query",
        "tier",
        "refresh_timeout",
        "diamond_consistency",
        "diamond_schedule_policy",
    }
    assert {action for action, *_ in done(owner, text)} == {NONE}


def test_other_settings_of_the_session_are_a_change(owner, app, admin):
    done(owner, FILE)
    admin.execute("alter role app set timezone = 'Asia/Kolkata'")
    try:
        assert [changes for _, _, changes in done(owner, FILE)] == [("settings",), ("settings",)]
        assert {action for action, *_ in done(owner, FILE)} == {NONE}
    finally:
        admin.execute("alter role app reset timezone")


def test_a_set_drops_what_it_created_and_nothing_else(owner, app):
    app.execute("select pgtrickle.create_stream_table('mine', 'select 1 as x')")
    more = "CREATE STREAM TABLE mine AS select 1 as x;\n"
    done(owner, FILE + more, "shop")
    assert done(owner, more) == [(NONE, "public.mine", ())]
    assert len(names(app)) == 3
    assert done(owner, "", "other") == []
    assert done(owner, "", "shop") == [(DROP, "public.totals", ()), (DROP, "public.sums", ())]
    # it was there before, so the set never created it
    assert names(app) == ["public.mine"]


def test_nothing_is_dropped_that_others_read(owner, app):
    done(owner, FILE, "shop")
    app.execute("select pgtrickle.create_stream_table('reader', 'select * from totals')")
    assert isinstance(failure(owner, "", "shop"), StillInUse)
    assert len(names(app)) == 3


def test_a_stream_table_belongs_to_one_set(owner):
    done(owner, FILE, "shop")
    error = failure(owner, FILE, "other")
    assert isinstance(error, WrongState)
    assert "public.sums belongs to the set shop of definitions" in error.message


def test_one_mistake_leaves_everything_as_it_was(owner, app):
    done(owner, FILE, "shop")
    text = (
        FILE.replace("'5s'", "'7s'")
        + "\nCREATE STREAM TABLE wrong AS\n  select region,\n    nothing from orders;\n"
    )
    error = failure(owner, text, "shop")
    assert isinstance(error, BadQuery)
    assert error.message == 'line 10, column 5: column "nothing" does not exist'
    assert app.execute(
        "select schedule from pgtrickle.pgt_stream_tables where pgt_name = 'totals'"
    ).fetchone() == ("5s",)
    assert names(app) == ["public.sums", "public.totals"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "create stream table a as select 1 as x;\n drop stream table a",
            "line 2, column 2: a file of definitions",
        ),
        (
            "create stream table a as select 1 as x; create stream table A as select 2 as x",
            "line 1, column 41: public.a is defined twice",
        ),
        (
            "create stream table a with (schedul = '1s') as select 1",
            "line 1, column 29: there is no option schedul",
        ),
        (
            "create stream table a.b.c as select 1 as x",
            "line 1, column 1: 'a.b.c' is not the name of a table",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_column(owner, app, text, message):
    with pytest.raises((BadStatement, PgTrickleError)) as caught:
        plan(owner, read_definitions(text))
    assert caught.value.message.startswith(message)


def test_a_name_that_a_table_has_is_refused(owner, app):
    error = failure(owner, "\ncreate stream table orders as select 1 as x")
    assert isinstance(error, NameTaken)
    assert error.message == "line 2, column 1: public.orders already exists"


def test_definitions_that_read_each_other_are_refused(owner):
    text = "create stream table a as select * from b; create stream table b as select * from a"
    assert failure(owner, text).message == 'line 1, column 40: relation "b" does not exist'


def test_differential_that_cannot_be_is_refused(owner, app):
    text = (
        "create stream table a with (refresh_mode = DIFFERENTIAL) as"
        " select id from orders tablesample system (5) repeatable (1)"
    )
    with pytest.raises(PgTrickleError) as caught:
        plan(owner, read_definitions(text))
    assert caught.value.message.startswith("line 1, column")
    text = (
        "create stream table a with (refresh_mode = DIFFERENTIAL) as select id, rank() over (order by amount)"
        " from orders; create stream table b with (refresh_mode = 'DIFFERENTIAL') as"
        " select count(*) from a"
    )
    assert {action for action, *_ in done(owner, text)} == {CREATE}


def test_a_plan_that_is_no_longer_true_is_not_carried_out(owner, app):
    file = read_definitions(FILE)
    planned = plan(owner, file)
    query = "select region, id, sum(amount) as amount from orders group by region, id"
    app.execute("select pgtrickle.create_stream_table('sums', %s)", (query,))
    with pytest.raises(WrongState, match="were changed since this was planned"):
        apply(owner, file, expected=planned)
    assert names(app) == ["public.sums"]


def test_a_set_does_not_drop_tables_of_other_roles(owner, app, database):
    done(owner, FILE, "shop")
    assert done(database.dsn(TRICKLE), "", "shop") == []


def test_a_chain_in_reverse_order_is_created(owner, app):
    steps = [f"create stream table t{n} as select * from t{n - 1};" for n in range(40, 0, -1)]
    text = "\n".join([*steps, "create stream table t0 as select * from orders;"])
    assert len(done(owner, text)) == 41


@pytest.mark.light
def test_the_command_line_shows_the_plan_and_asks(owner, app, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PGTRICKLE_DSN", owner)
    path = tmp_path / "tables.sql"
    path.write_text(FILE)
    assert run(["apply", "-f", str(path), "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        "+ create public.totals\n+ create public.sums\nNothing was changed: this is a dry run.\n"
    )
    assert run(["apply", "-f", str(path)]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert names(app) == []
    assert run(["apply", "-f", str(path), "--yes", "--set", "shop"]) == 0
    capsys.readouterr()
    path.write_text(FILE.replace("'5s'", "'6s'"))
    assert run(["apply", "-f", str(path), "--yes", "--json", "--set", "shop"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["is_applied"] is True
    assert found["plan"][0] == {"action": "alter", "name": "public.totals", "changes": ["schedule"]}
    assert run(["export", "sums"]) == 0
    assert capsys.readouterr().out.startswith("CREATE STREAM TABLE public.sums AS\n")
    assert run(["export"]) == 0
    path.write_text(capsys.readouterr().out)
    assert run(["apply", "-f", str(path), "--set", "shop"]) == 0
    assert capsys.readouterr().out == "Nothing to do: 2 stream tables as defined.\n"
    path.write_text("")
    assert run(["apply", "-f", str(path), "--yes", "--set", "shop"]) == 0
    assert capsys.readouterr().out == "- drop public.totals\n- drop public.sums\nDone.\n"


def test_python_applies_a_text_or_a_path(owner, app, tmp_path):
    with pgtrickle.connect(owner) as trickle:
        assert [change.action for change in trickle.apply(FILE, dry_run=True)] == [CREATE, CREATE]
        path = tmp_path / "tables.sql"
        path.write_text(FILE)
        assert list(trickle.apply(path)) == [
            PlannedChange(CREATE, "public.totals"),
            PlannedChange(CREATE, "public.sums"),
        ]
        assert [change.action for change in trickle.apply(trickle.export())] == [NONE, NONE]
