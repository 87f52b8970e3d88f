"""Casts between a user's types and text are used by the user's queries alone, never to move values."""

from __future__ import annotations

import pytest

from pgtrickle.model.settings import SparkPath

TRAP = """
create function {name}({given}) returns {result} language plpgsql as
    'begin raise exception $$a cast was used$$; end'
"""
TYPES = """
create type mood as enum ('sad', 'happy');
create domain temper as mood;
create type spot as (x float8, mood mood);
create type span as range (subtype = float8);
"""


@pytest.mark.every_postgres
def test_a_users_casts_to_and_from_text_are_never_used(app, admin, source, stream_table, engine):
    admin.execute(TYPES)
    for number, name in enumerate(("mood", "spot", "span", "mood[]")):
        admin.execute(TRAP.format(name=f"out{number}", given=name, result="text"))
        admin.execute(f"create cast ({name} as text) with function out{number} ({name}) as assignment")
        admin.execute(TRAP.format(name=f"back{number}", given="text", result=name))
        admin.execute(f"create cast (text as {name}) with function back{number} (text) as assignment")
    held = source("held(id int primary key, m mood, t temper, s spot, r span, a mood[], p point)")
    held.change(
        "insert into held select g, 'happy', 'sad', row(g, 'sad'::mood)::spot, span(g, g + 1),"
        " array['sad', null]::mood[], point(g, g) from generate_series(1, 4) g"
    )
    engine.path = SparkPath.DISTRIBUTED
    tables = [
        stream_table(
            "select h.*, o.id as other from held h join held o on o.m = h.m and o.id > h.id", loads=False
        ),
        stream_table("select m, t, s, r, a, count(*) as n, max(id) as last from held group by 1, 2, 3, 4, 5"),
        stream_table("select m, mode() within group (order by s) as most from held group by m"),
        stream_table("select id, m, s from held order by s desc, id limit 2"),
        stream_table("select id, (select count(*) from held o where o.s <= h.s) as below from held h"),
    ]
    for path in (SparkPath.DISTRIBUTED, SparkPath.SMALL):
        engine.path = path
        for table in tables:
            table.refresh()
        held.change(
            "update held set m = 'sad', t = null, s = row(2.5, null)::spot where id = 1",
            "update held set a = array['happy']::mood[] where id = 1",
            "update held set s = null, r = null where id = 2",
            "delete from held where id in (4, 5)",
            "insert into held values (5, 'sad', 'happy', row(1, 'sad'::mood)::spot, 'empty', '{}', '(1,2)')",
        )
    for table in tables:
        table.refresh()
    first, *others = tables
    whole = first.query.replace("h.*", "h.id, h.m, h.t, h.s, h.r, h.a, row(h.p)")
    stored = f"select id, m, t, s, r, a, row(p), other from {first.name}"
    for left, right in ((stored, whole), *((f"select * from {o.name}", o.query) for o in others)):
        counted = "select md5(string_agg(row(q.*)::text, ',' order by row(q.*)::text)) from ({}) as q"
        assert app.execute(counted.format(left)).fetchone() == app.execute(counted.format(right)).fetchone()
