"""Sources that are altered, rewritten, attached and detached, with no write afterwards."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.model.stream_table import Action

pytestmark = [pytest.mark.every_postgres, pytest.mark.slow]

ITEMS = "create table items(id int primary key, v int, note text)"
GRANT = "grant select, trigger on {} to trickle"
LEAVE = "alter table part no inherit events"


def test_what_changes_no_answer_does_nothing(items, ground, app):
    ground.follow("select id, v from items")
    for statement in (
        "alter table items add column extra int default 5",
        "alter table items rename column note to remark",
        "alter table items drop column remark",
        "alter table items alter column v set statistics 50",
        "alter table items alter column v set not null",
        "alter table items alter column v set default 3",
        "alter table items set (fillfactor = 70)",
        "create index on items (v)",
        "alter table items add constraint positive check (v > -1000)",
        "grant select on items to public",
        "grant select (v) on items to public",
        "comment on table items is 'nothing'",
        "comment on column items.v is 'nothing'",
        "analyze items",
        "vacuum items",
        "vacuum full items",
        "cluster items using items_pkey",
        "vacuum full s",
        "truncate items",
        "create rule silence as on insert to items where new.id < 0 do instead nothing",
        "create table another(id int); alter table another rename to unrelated",
        "create view above as select * from items",
        "grant select on s to public",
        "comment on table s is 'nothing'",
        "alter table s alter column v set statistics 50",
    ):
        app.execute(statement)
        assert (statement, ground.poll()) == (statement, {})
    assert ground.state() == (False, None, None)


def test_a_rewritten_column_or_a_lost_key_loads_anew(items, ground, app):
    ground.follow("select id, v, upper(note) as note from items")
    for statement, says in (
        ("alter table items alter column v type int using v * 10", "column v of public.items was rewritten"),
        (
            "alter table items alter column note type varchar(40)",
            "note of public.items had type text and now has type character varying(40)",
        ),
        ("alter table items drop constraint items_pkey", "lost a key"),
    ):
        assert says in ground.after(statement)
        needs_reinit, reason, error = ground.state()
        assert (needs_reinit, error) == (True, None)
        assert says in reason


@pytest.mark.parametrize("is_in_one_transaction", [True, False])
def test_a_rewrite_is_told_from_vacuum_full(items, ground, app, is_in_one_transaction):
    ground.follow("select id, v from items")
    app.execute("vacuum full items")
    app.execute("alter table items alter column note type text using note || 'x'")
    assert ground.poll() == {}
    with app.transaction() if is_in_one_transaction else app.pipeline():
        app.execute("alter table items alter column v type int using v * 10")
        app.execute("alter table items alter column v type int using v / 10")
    assert "column v of public.items was rewritten" in ground.poll()["s"]


def test_what_the_query_cannot_follow_is_an_error_that_ends_with_its_cause(items, ground, app):
    ground.follow("select id, v from items")
    for statement, says, back in (
        (
            "alter table items alter column v type bigint using v + 1",
            "the query does not have the columns",
            "alter table items alter column v type int",
        ),
        (
            "alter table items rename column v to value",
            "is now called value",
            "alter table items rename column value to v",
        ),
        (
            "alter table items rename to things",
            "is now called public.things",
            "alter table things rename to items",
        ),
        (
            "alter table items enable row level security",
            "row-level security",
            "alter table items disable row level security",
        ),
    ):
        found = ground.after(statement)
        assert found.startswith("ERROR ")
        assert says in found
        assert ground.state()[2] is not None
        assert "ERROR" not in ground.after(back)
        assert (ground.state()[0], ground.state()[2]) == (True, None)
    assert "column v of public.items was dropped" in ground.after("alter table items drop column v cascade")
    assert "items was dropped" in ground.after("drop table items cascade")


def test_vacuum_full_beside_a_default_that_is_not_stored_yet_is_not_silent(items, ground, app):
    """PostgreSQL then writes the row of the column, as it does for a rewrite: it is computed anew, once."""
    app.execute("alter table items add column extra int default 5")
    ground.follow("select id, extra from items")
    assert ground.after("vacuum full items") == "column extra of public.items was rewritten"
    app.execute("vacuum full items")
    assert ground.poll() == {}


def test_partitions_that_come_and_go_load_anew(ground, app):
    for statements in (
        ["alter table events detach partition events_1"],
        ["alter table events detach partition events_1 concurrently"],
        ["drop table events_1"],
        [
            "alter table events detach partition events_1",
            "insert into events_1 values (5, 11, 5)",
            "alter table events attach partition events_1 for values from (10) to (20)",
        ],
        [
            "create table events_3 (id int, day int, v int)",
            "insert into events_3 values (3, 30, 3)",
            GRANT.format("events_3"),
            "alter table events attach partition events_3 for values from (30) to (40)",
        ],
        ["alter table events alter column v type int using v * 10"],
    ):
        app.execute("create table events(id int, day int, v int) partition by range (day)")
        app.execute("create table events_1 partition of events for values from (10) to (20)")
        app.execute("create table events_2 partition of events for values from (20) to (30)")
        app.execute(GRANT.format("events, events_1, events_2"))
        app.execute("insert into events values (1, 10, 1), (2, 20, 2)")
        ground.follow("select day, sum(v) as v from events group by day")
        assert "public.events" in ground.after(*statements)
        assert ground.state()[0] is True
        ground.drop("events", "events_1", "events_3")


def test_children_that_come_and_go_load_anew(ground, app):
    for statements in (
        ["alter table child no inherit parent"],
        [
            "alter table child no inherit parent",
            "insert into child values (3, 3)",
            "alter table child inherit parent",
        ],
        ["create table second() inherits (parent)", GRANT.format("second")],
        ["create table grandchild() inherits (child)", GRANT.format("grandchild")],
        ["alter table child disable trigger all", "alter table child enable trigger all"],
    ):
        app.execute("create table parent(id int, v int)")
        app.execute("create table child() inherits (parent)")
        app.execute(GRANT.format("parent, child"))
        ground.follow("select id, v from parent")
        assert "public." in ground.after(*statements)
        assert ground.state()[0] is True
        ground.drop("parent", "child")


def test_triggers_that_were_off_load_anew(ground, app):
    """Changes may have been missed, also where the triggers look as before."""
    off = "select table_name from pgtrickle.trigger_inventory() where not is_present or not is_enabled"
    for statements in (
        ["alter table items disable trigger all", "alter table items enable trigger all"],
        ["begin; alter table items disable trigger all; alter table items enable trigger all; commit"],
        ["alter table items disable trigger user"],
        ["alter table items enable replica trigger pgtrickle_{0}_insert"],
        ["alter trigger pgtrickle_{0}_update on items rename to something"],
        ["drop trigger pgtrickle_{0}_delete on items"],
    ):
        app.execute(ITEMS)
        app.execute(GRANT.format("items"))
        ground.follow("select id, v from items")
        relation = app.execute("select 'items'::regclass::oid").fetchone()[0]
        assert "of public.items was" in ground.after(*(text.format(relation) for text in statements))
        assert ground.state()[0] is True
        assert app.execute(off).fetchall() == []
        ground.drop("items")


def test_another_reader_with_more_columns_leaves_no_gap(items, ground):
    """We replace the triggers ourselves then, under a lock."""
    ground.follow("select id from items")
    ground.follow("select id, v, note from items", "t")
    assert ground.state("s") == (False, None, None)
    assert ground.state("t") == (False, None, None)


def test_a_gap_is_not_hidden_by_another_reader(items, ground, app):
    ground.follow("select id from items")
    app.execute("alter table items disable trigger all")
    app.execute("alter table items enable trigger all")
    app.execute("select pgtrickle.create_stream_table('t', 'select id, v, note from items')")
    assert "was switched off, or replaced" in ground.poll()["s"]


def test_a_table_that_becomes_a_child_or_a_partition_gets_triggers_for_it(ground, app):
    for statements in (
        ["create table root(id int, v int, note text)", "alter table items inherit root"],
        [
            "create table root(id int not null, v int, note text) partition by range (id)",
            "alter table root attach partition items for values from (0) to (100)",
        ],
    ):
        app.execute(ITEMS)
        app.execute(GRANT.format("items"))
        ground.follow("select id, v from items")
        assert "public.items was attached, detached, or became a child" in ground.after(*statements)
        level = "select trigger_level from pgtrickle.pgt_sources where source_relid = 'items'::regclass"
        assert app.execute(level).fetchone() == ("row",)
        ground.drop("items", "root")


def test_a_subscription_target_gets_triggers_for_it(items, ground, app, admin):
    ground.follow("select id, v from items")
    # the row that the creation of a subscription writes
    admin.execute("set allow_system_table_mods = on")
    admin.execute(
        "insert into pg_subscription_rel (srsubid, srrelid, srsubstate) values (1, 'items'::regclass, 'r')"
    )
    assert "a subscription of public.items was created or dropped" in ground.poll()["s"]
    level = "select trigger_level from pgtrickle.pgt_sources where source_relid = 'items'::regclass"
    assert app.execute(level).fetchone() == ("row",)
    admin.execute("delete from pg_subscription_rel")


def test_a_partition_that_others_follow_too_leaves_no_gap(app, ground):
    app.execute("create table e (id int, v int) partition by list (v)")
    app.execute("create table e1 partition of e for values in (1)")
    app.execute("grant select, trigger on e, e1 to trickle")
    ground.follow("select id from e")
    app.execute("select pgtrickle.create_stream_table('of_part', 'select id from e1')")
    assert "s" not in ground.poll()
    app.execute("select pgtrickle.drop_stream_table('of_part')")
    assert ground.poll() == {}


def test_a_part_that_changes_unnoticed_stops_the_stream_table_until_it_is_gone(ground, app, source):
    """Partitions and children are held to what a source is held to."""
    source("events(id int, day int) partition by list (day)")
    app.execute("create table events_1 partition of events for values in (1)")
    app.execute("grant select, trigger on events_1 to trickle")
    ground.follow("select id, day from events")
    found = ground.after("alter table events_1 set unlogged")
    assert "public.events_1, a partition or child of public.events, is unlogged" in found
    assert "no longer true" in ground.after("alter table events_1 set logged")
    found = ground.after(
        "create unlogged table events_2 partition of events for values in (2)",
        "grant select, trigger on events_2 to trickle",
    )
    assert "public.events_2, a partition or child of public.events, is unlogged" in found
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="is unlogged"):
        ground.follow("select day from events", "t")
    # it was never recorded, as the query was refused
    assert ground.after("alter table events_2 set logged").startswith("the partitions or children of")
    ground.drop("events")
    source("parents(id int)")
    ground.follow("select id from parents")
    found = ground.after("create temp table own () inherits (parents)")
    assert "own inherits from public.parents, and only its own session sees its rows" in found
    assert "no longer true" in ground.after("drop table own")
    app.execute("create table plain (id int)")
    app.execute("grant select on plain to trickle")
    found = ground.after("alter table plain inherit parents")
    assert "the role of the sidecar may not capture the changes of table public.parents" in found
    assert ground.after("grant trigger on plain to trickle").startswith("the partitions or children of")


def test_a_swap_in_two_transactions_is_followed_in_the_end(items, ground, app, source):
    """Between them the query reads a table that is not there."""
    source("items_new(id int primary key, v int)", rows=[(7, 7)])
    ground.follow("select id, v from items")
    found = ground.after("alter table items rename to items_old")
    assert found.startswith("ERROR table public.items is now called public.items_old")
    assert "is now called" in ground.after("alter table items_new rename to items")
    assert ground.state()[0] is True
    (source_id,) = app.execute(
        "select source_relid::regclass::text from pgtrickle.pgt_dependencies where source_type = 'table'"
    ).fetchone()
    assert source_id == "items"


def test_what_a_replaced_view_may_not_read_yet_is_followed_once_it_may(items, ground, app):
    app.execute("create view low as select id from items; grant select on low to trickle")
    app.execute("create table others (id int)")
    ground.follow("select id from low")
    found = ground.after("create or replace view low as select id from others")
    assert "the role of the sidecar may not capture the changes of table public.others" in found
    assert "view public.low was replaced" in ground.after("grant select, trigger on others to trickle")


@pytest.mark.parametrize(
    ("table", "part", "writes"),
    [
        ("events(id int, day int) partition by list (day)", "partition of events for values in (3)", ""),
        ("events(id int, day int)", "() inherits (events)", "insert into part values (3, 3)"),
    ],
)
@pytest.mark.parametrize("end", ["drop table part", "alter table events {} part"])
def test_a_part_that_came_and_went_between_two_polls_leaves_no_rows(
    source, app, stream_table, table, part, writes, end
):
    """Its rows were written through the table, and nothing in the catalogs tells of it afterwards."""
    is_partitioned = "partition" in part
    events = source(table)
    if is_partitioned:
        app.execute("create table events_1 partition of events for values in (1)")
        app.execute("grant select, trigger on events_1 to trickle")
    events.insert([(1, 1)])
    counted = stream_table("select count(*) as n, sum(id) as ids from events")
    for _ in range(2):
        events.change(
            f"create table part {part}",
            writes or "insert into events values (3, 3)",
            "update events set id = id + 1",
            end.format("detach partition")
            if is_partitioned
            else end.replace("alter table events {} part", LEAVE),
        )
        counted.refresh()
        counted.equals_its_query()
        app.execute("drop table if exists part")
    events.change("insert into events values (2, 1)")
    assert counted.refresh().action is Action.DIFFERENTIAL
    counted.equals_its_query()
