"""Several stream tables are created in any order, all or none, and every mistake is named with its place."""

from __future__ import annotations

import json
import threading

import psycopg
import pytest

from pgtrickle.commands.bulk import TableDefinition, bulk_create
from pgtrickle.model.errors import PgTrickleError

pytestmark = pytest.mark.every_postgres


@pytest.fixture(autouse=True)
def orders(source):
    source("orders(id int, amount int)", rows=[(1, 10)])


def create(connection: psycopg.Connection, definitions: object) -> list[dict[str, object]]:
    row = connection.execute("select pgtrickle.bulk_create(%s)", (json.dumps(definitions),)).fetchone()
    assert row is not None
    made: list[dict[str, object]] = row[0]
    return made


def names(connection: psycopg.Connection) -> list[str]:
    return [name for (name,) in connection.execute("select name from pgtrickle.pgt_status()")]


CHAIN: list[TableDefinition] = [
    {"name": "third", "query": "select id from public.second"},
    {"name": '"Second One"', "query": "select id from first"},
    {"name": "second", "query": 'select id from "Second One"', "schedule": None, "tier": "cold"},
    {"name": "first", "query": "select id from orders", "schedule": "5s", "append_only": True},
]


def test_definitions_may_read_one_another_in_any_order(app):
    made = create(app, CHAIN)
    assert [one["name"] for one in made] == [
        "public.third",
        'public."Second One"',
        "public.second",
        "public.first",
    ]
    assert {one["status"] for one in made} == {"created"}
    found = app.execute(
        "select pgt_id, schedule, refresh_tier, append_only from pgtrickle.stream_tables_info"
    ).fetchall()
    options = {number: others for number, *others in found}
    assert [options[one["pgt_id"]] for one in made] == [
        ["calculated", "hot", False],
        ["calculated", "hot", False],
        [None, "cold", False],
        ["5s", "hot", True],
    ]


def test_every_option_of_create_is_taken(app):
    definition = {
        "name": "all_of_them", "query": "select id from orders", "schedule": "1h", "refresh_mode": "full",
        "initialize": False, "diamond_consistency": "none", "diamond_schedule_policy": "slowest",
        "cdc_mode": "trigger", "append_only": False, "pooler_compatibility_mode": True, "tier": "warm",
        "refresh_timeout": "5min", "on_divergence": "stop", "keep_changes": "1h",
        "auxiliary_results": "never",
    }  # fmt: skip
    taken = app.execute(
        "select array_agg(n) from pg_proc p, unnest(p.proargnames) n where p.proname = 'create_stream_table'"
    ).fetchone()[0]
    assert sorted(taken) == sorted(definition)
    create(app, [definition])
    assert app.execute(
        "select refresh_mode, initialize, diamond_consistency, refresh_tier, auxiliary_results"
        " from pgtrickle.pgt_stream_tables"
    ).fetchone() == ("FULL", False, "none", "warm", "never")


def test_one_that_cannot_be_created_leaves_none(app):
    with pytest.raises(psycopg.errors.UndefinedColumn, match=r"definition 4 \(bad\): column .nope. does"):
        create(app, [*CHAIN, {"name": "bad", "query": "select nope from first"}])
    assert names(app) == []
    assert app.execute("select to_regclass('first')").fetchone() == (None,)


def test_every_mistake_is_named_with_its_place(app):
    definitions = [
        7,
        {"name": "a", "query": "select 1 as a", "schedule": "sometimes", "tier": "tepid", "colour": "red"},
        {"query": 5, "append_only": "yes", "initialize": 1},
        {"name": "a", "query": "select 2 as a", "refresh_mode": ["FULL"]},
    ]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="nothing was created") as refusal:
        create(app, definitions)
    assert (refusal.value.diag.message_detail or "").split("\n") == [
        "definition 0: it is number, not an object",
        "definition 1 (a): 'sometimes' is not a schedule",
        "definition 1 (a): 'tepid' is not a value of tier",
        'definition 1 (a): there is no option "colour"',
        'definition 2: append_only is "yes", not true or false',
        "definition 2: initialize is 1, not true or false",
        "definition 2: it has no name",
        "definition 2: query is number, not a string",
        "definition 3 (a): an earlier definition has the same name",
        'definition 3 (a): refresh_mode is ["FULL"], not a string',
    ]


@pytest.mark.parametrize("definitions", [None, {"name": "a"}, "a", 5, True])
def test_what_is_no_array_is_refused(app, definitions):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="not an array"):
        create(app, definitions)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="not an array"):
        app.execute("select pgtrickle.bulk_create(null)")


def test_an_empty_array_creates_nothing(app):
    assert create(app, []) == []


def test_a_circle_is_refused(app):
    circle = [{"name": "a", "query": "select id from b"}, {"name": "b", "query": "select id from a"}]
    with pytest.raises(
        psycopg.errors.UndefinedTable, match=r"definition 0 \(a\): relation .b. does not exist"
    ):
        create(app, circle)


def test_a_name_that_another_definition_takes_over_is_refused(app, admin):
    """What a query reads must not depend on the order in which the definitions were created."""
    admin.execute("create schema early authorization app; grant usage on schema early to trickle")
    app.execute("set search_path = early, public")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="earlier schema of the search_path"):
        create(
            app,
            [
                {"name": "public.reader", "query": "select id from orders"},
                {"name": "early.orders", "query": "select id, amount from public.orders"},
            ],
        )
    assert names(app) == []


def test_a_rollback_takes_all_of_them_back(connect, app):
    session = connect("app")
    create(session, CHAIN)
    assert len(names(session)) == 4
    session.rollback()
    assert names(app) == []


def test_two_sessions_at_once_create_their_own(connect, app):
    sessions = [connect("app"), connect("app")]
    failures: list[BaseException] = []

    def work(session: psycopg.Connection, letter: str) -> None:
        try:
            create(
                session,
                [
                    {"name": f"{letter}_above", "query": f"select id from {letter}_below"},
                    {"name": f"{letter}_below", "query": "select id from orders"},
                ],
            )
            session.commit()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(sessions, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert failures == []
    assert names(app) == ["public.a_above", "public.a_below", "public.b_above", "public.b_below"]


def test_python_has_it_too(database, app):
    made = bulk_create(database.dsn("app"), CHAIN)
    assert [one.name for one in made][:1] == ["public.third"]
    with pytest.raises(PgTrickleError, match=r"definition 0 \(first\)"):
        bulk_create(database.dsn("app"), CHAIN[3:])
