"""Values of every kind arrive unchanged, and what cannot exist here is told."""

from __future__ import annotations

import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import AttachedFailed, NotDeclared, PgTrickleError
from tests.attached.conftest import ALIAS, Attached, refresh_by_name

pytestmark = [pytest.mark.database, pytest.mark.slow]

COLUMNS: dict[str, tuple[str, list[str | None]]] = {
    "n": ("numeric", ["1.0", "1.00", "NaN", "-0.5", None]),
    "f": ("double precision", ["0", "-0", "NaN", "Infinity", "1e-300"]),
    "t": ("text", ["", "a,b", "q\"uo'te", "new\nline\ttab", "\\N"]),
    "c": ("char(3)", ["a", "ab ", "abc", "", None]),
    "b": ("bytea", [r"\x00ff", r"\x", r"\x5c4e", None, r"\x0a"]),
    "d": ("date", ["2024-02-29", "infinity", "-infinity", "0044-03-15 BC", None]),
    "z": ("timestamptz", ["2024-01-01 00:00:00.000001+02", "infinity", None, "1900-01-01Z", "2000-01-01Z"]),
    "i": ("interval", ["1 mon -2 days 03:04:05.6", "0", None, "-1 year", "1 day 24:00"]),
    "j": ("jsonb", ['{"a": [1, null]}', "null", None, '"x"', "1.10"]),
    "k": ("json", ['{"a":  1}', '{"a": 1}', None, "[]", "0"]),
    "a": ("int[]", ["{1,NULL,3}", "{}", "{{1,2},{3,4}}", "[2:3]={7,8}", None]),
    "m": ("money", ["1234.56", "-0.01", None, "0", "7"]),
    "u": ("uuid", ["00000000-0000-0000-0000-000000000001", None, None, None, None]),
    "r": ("int4range", ["[1,5)", "empty", "(,3)", None, "[7,)"]),
}


def test_values_arrive_unchanged(attached: Attached, app):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    attached.table(f"id int primary key, {columns}", "kinds")
    names = ", ".join(COLUMNS)
    values = ", ".join(f"%s::{kind}" for kind, _ in COLUMNS.values())
    query = f"select id, {', '.join(f'{name}::text as {name}' for name in COLUMNS)} from crm.public.kinds"
    app.execute("select pgtrickle.create_stream_table('kinds_here', %s)", (query,))
    for number in range(5):
        attached.app.execute(
            f"insert into kinds (id, {names}) values ({number}, {values})",
            [found[number] for _, found in COLUMNS.values()],
        )
        refresh_by_name(attached.engine, "kinds_here")
        attached.check("kinds_here", query, "kinds")
    # a value that only looks different is a change
    attached.app.execute("update kinds set n = 1.000, f = '-0', c = 'a', k = '{}', a = '{9}' where id = 0")
    attached.app.execute("delete from kinds where id in (1, 2)")
    refresh_by_name(attached.engine, "kinds_here")
    attached.check("kinds_here", query, "kinds")
    attached.follow(compares=True)


def test_money_does_not_depend_on_the_locale_of_the_other_database(attached: Attached, app):
    attached.table("id int primary key, m money", "prices")
    with attached.database.connect(SUPERUSER, autocommit=True) as admin:
        found = admin.execute(
            "select collname from pg_collation where collname ~ '^de_DE' limit 1"
        ).fetchone()
        if found is None:
            pytest.skip("this system has no locale with a comma")
        admin.execute(f"alter database {attached.database.name} set lc_monetary = '{found[0]}'")
    app.execute(
        "select pgtrickle.create_stream_table('p', 'select id, m::numeric as m from crm.public.prices')"
    )
    attached.app.execute("insert into prices values (1, 1234.5::numeric::money)")
    refresh_by_name(attached.engine, "p")
    assert [str(m) for _, m in app.execute("select * from p")] == ["1234.50"]


def test_a_type_that_does_not_exist_here_is_named_until_it_does(attached: Attached, app):
    attached.app.execute("create type mood as enum ('sad', 'glad')")
    attached.app.execute("create table moods (id int primary key, m mood)")
    attached.app.execute("grant select, trigger on moods to trickle")
    attached.local.execute(f"select pgtrickle.declare_source('{ALIAS}', 'public', 'moods')")
    attached.follow()
    query = "select id, m::text as m from crm.public.moods"
    with pytest.raises(Exception, match=r"column m has the type public\.mood, which does not exist here"):
        app.execute("select pgtrickle.create_stream_table('moods_here', %s)", (query,))
    app.execute("create type mood as enum ('sad', 'glad')")
    attached.declare("moods")
    app.execute("select pgtrickle.create_stream_table('moods_here', %s)", (query,))
    attached.app.execute("insert into moods values (1, 'glad'), (2, 'sad')")
    refresh_by_name(attached.engine, "moods_here")
    attached.check("moods_here", query, "moods")
    attached.table("id int primary key", "calm")
    app.execute("select pgtrickle.create_stream_table('calm_here', 'select id from crm.public.calm')")
    attached.app.execute("insert into calm values (1)")
    attached.app.execute("alter type mood add value 'angry'; update moods set id = 3 where id = 2")
    attached.app.execute("insert into moods values (4, 'angry')")
    with pytest.raises((PgTrickleError, NotDeclared), match="angry"):
        refresh_by_name(attached.engine, "moods_here")
    # other tables of the same database go on
    refresh_by_name(attached.engine, "calm_here")
    attached.check("calm_here", "select id from crm.public.calm", "calm")
    app.execute("alter type mood add value 'angry'")
    refresh_by_name(attached.engine, "moods_here")
    attached.check("moods_here", query, "moods")


def test_partitions_and_generated_columns(attached: Attached, app):
    attached.app.execute(
        "create table parted (id int, day date, twice int generated always as (id * 2) stored,"
        " primary key (id, day)) partition by range (day)"
    )
    for month in (1, 2):
        attached.app.execute(
            f"create table parted_{month} partition of parted"
            f" for values from ('2024-0{month}-01') to ('2024-0{month + 1}-01')"
        )
    attached.app.execute("grant select, trigger on parted to trickle")
    attached.declare("parted")
    query = "select day, sum(twice) as s, count(*) as n from crm.public.parted group by day"
    app.execute("select pgtrickle.create_stream_table('by_day', %s)", (query,))
    with pytest.raises(AttachedFailed, match="permission denied for table parted_1"):
        refresh_by_name(attached.engine, "by_day")
    attached.app.execute("grant select, trigger on parted_1, parted_2 to trickle")
    oracle = query.replace("crm.public.parted", "parted")
    for change in (
        "insert into parted (id, day) select g, '2024-01-05'::date + g from generate_series(1, 50) g",
        "update parted set day = day + 20 where id < 5",
        "delete from parted where id % 3 = 0",
        "truncate parted_2",
        "alter table parted detach partition parted_1",
    ):
        attached.app.execute(change)
        refresh_by_name(attached.engine, "by_day")
        assert sorted(app.execute("select * from by_day").fetchall()) == sorted(
            attached.app.execute(oracle).fetchall()
        ), change
