"""Where a query may name a table of an attached database, and where a text only looks like such a name."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.database

STAND_IN = 'pgtrickle_attached."crm.public.people"'


@pytest.fixture
def declared(connection):
    """A declared table whose stand-in exists, as a sidecar leaves it."""
    connection.execute("select pgtrickle.attach_database('crm', 'somewhere')")
    connection.execute("select pgtrickle.declare_source('crm', 'public', 'people')")
    connection.execute(
        "select pgtrickle_internal.fit_stand_in(table_id, %s::jsonb) from pgtrickle.pgt_attached_tables",
        (
            '{"relation": 1, "version": "1", "gap": null, "keys": [["id"]], "indexes": [], "columns":'
            ' [{"name": "id", "number": 1, "type": "integer", "is_never_null": true}]}',
        ),
    )
    connection.commit()
    return connection


def written(connection: psycopg.Connection, query: str) -> str:
    row = connection.execute("select pgtrickle_internal.with_stand_ins(%s)", (query,)).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from crm.public.people", f"select * from {STAND_IN}"),
        ("select crm.public.people.id from crm.public.people", f"select {STAND_IN}.id from {STAND_IN}"),
        ('select * from CRM . public."people" p', f"select * from {STAND_IN} p"),
        ("select 'crm.public.people', $$crm.public.people$$, $x$crm.public.people$x$", None),
        ("select 1 -- crm.public.people\n /* crm.public.people */", None),
        (r"select E'\'crm.public.people' ", None),
        ('select "crm.public.people" from t', None),
        ("select a.crm.public, x.people from a.crm, x", None),
        ("select 1.5, 1e5, crm.people from crm", None),
    ],
)
def test_only_names_of_tables_are_replaced(declared, query, expected):
    assert written(declared, query) == (expected or query)


def test_a_query_without_attached_databases_is_untouched(connection):
    assert written(connection, "select * from crm.public.people") == "select * from crm.public.people"


def test_a_table_that_is_not_declared_is_named_with_the_remedy(declared):
    with pytest.raises(psycopg.Error, match=r"crm\.public\.others is not declared") as refusal:
        written(declared, "select * from crm.public.others")
    assert refusal.value.diag.message_hint == "select pgtrickle.declare_source('crm', 'public', 'others')"


def test_a_table_declared_in_the_same_transaction_cannot_be_there(declared):
    declared.execute("select pgtrickle.declare_source('crm', 'public', 'others')")
    with pytest.raises(psycopg.Error, match="does not exist yet") as refusal:
        written(declared, "select * from crm.public.others")
    assert "commit first" in (refusal.value.diag.message_hint or "")


@pytest.mark.parametrize("alias", ["", "1st", "Crm", "a.b", 'a"b', "public", "pg_catalog", "x" * 41])
def test_an_alias_is_a_plain_name_that_no_schema_has(connection, alias):
    with pytest.raises(psycopg.Error, match="alias"):
        connection.execute("select pgtrickle.attach_database(%s, 'x')", (alias,))


def test_attaching_again_changes_nothing_and_another_database_is_refused(declared):
    declared.execute("select pgtrickle.attach_database('crm', 'somewhere')")
    with pytest.raises(psycopg.Error, match="attached already, as somewhere"):
        declared.execute("select pgtrickle.attach_database('crm', 'elsewhere')")


def test_a_definition_cannot_carry_other_statements(declared):
    for column in (
        '{"name": "x", "number": 2, "type": "integer; drop table x", "is_never_null": false}',
        '{"name": "x", "number": 2, "type": "integer) ; select 1 --", "is_never_null": false}',
    ):
        with pytest.raises(psycopg.Error, match="does not exist here"):
            declared.execute(
                "select pgtrickle_internal.fit_stand_in(table_id, %s::jsonb)"
                " from pgtrickle.pgt_attached_tables",
                (f'{{"relation": 1, "keys": [], "indexes": [], "columns": [{column}]}}',),
            )
        declared.rollback()


def test_long_names_get_a_stand_in_of_their_own(connection):
    names = [
        connection.execute(
            "select pgtrickle_internal.stand_in_name('crm', 'public', %s)", (name,)
        ).fetchone()[0]
        for name in ("t" * 60 + "1", "t" * 60 + "2")
    ]
    assert len(set(names)) == 2
    assert all(len(name) < 64 for name in names)
