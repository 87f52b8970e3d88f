"""The kept changes of a stream table add up to its content, whatever its refreshes do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import psycopg
import pytest

from pgtrickle.catalog.feeds import prune_feeds
from pgtrickle.commands.changes import change_point, changes
from pgtrickle.model.changes import ChangeKind
from pgtrickle.model.errors import ChangesGone, ChangesNotKept
from pgtrickle.model.stream_table import Action
from tests.feeds.conftest import added_up, content_of
from tests.fixtures.databases import APP, TRICKLE, Database

ROWS = "select region, amount from orders"
GROUPS = "select region, sum(amount) as total, count(*) as n from orders group by region"
REPLACED = "select region, string_agg(amount::text, ',' order by id) as amounts from orders group by region"
FIRST = "select id, region, amount from orders order by amount desc, id limit 2"
FIRST_GROUPS = (
    "select region, sum(amount) as total from orders group by region order by total desc, region limit 1"
)
FULL = "select region, amount from orders"

CHANGES = (
    "insert into orders values (4, 'west', 7), (5, 'west', 7), (6, 'north', 1)",
    "update orders set amount = amount + 1 where region = 'south'",
    # conflicting changes of one row in one window
    "insert into orders values (7, 'east', 1); update orders set amount = 2 where id = 7;"
    " delete from orders where id = 7",
    "delete from orders where id = 3; insert into orders values (3, 'south', 6)",
    "update orders set region = 'north' where id = 2; update orders set region = 'south' where id = 2",
    "delete from orders where region = 'west'",
    "truncate orders",
    "insert into orders select n, 'r' || n % 3, n from generate_series(1, 50) n",
)


def prune(database: Database) -> None:
    """Do what the maintenance of a sidecar does."""
    with database.connect(TRICKLE, autocommit=True) as connection:
        prune_feeds(connection)


@pytest.fixture
def kept(app: psycopg.Connection, stream_table) -> Callable[..., object]:
    """Creates a stream table that keeps its changes from its first load on."""

    def create(query: str, keep: str = "1d", mode: str = "AUTO", name: str = "kept"):
        table = stream_table(query, name=name, mode=mode, loads=False)
        app.execute("select pgtrickle.alter_stream_table(%s, keep_changes => %s)", (name, keep))
        table.refresh()
        return table

    return create


@pytest.mark.light
@pytest.mark.every_postgres
@pytest.mark.parametrize(
    ("query", "mode"),
    [
        (ROWS, "DIFFERENTIAL"),
        (GROUPS, "DIFFERENTIAL"),
        (REPLACED, "DIFFERENTIAL"),
        (FIRST, "DIFFERENTIAL"),
        (FIRST_GROUPS, "DIFFERENTIAL"),
        (FULL, "FULL"),
    ],
    ids=["rows", "groups", "replaced groups", "first rows", "first groups", "full"],
)
def test_changes_add_up_to_the_content_after_every_refresh(orders, app, kept, database, query, mode):
    table = kept(query, mode=mode)
    dsn = database.dsn(APP)
    seen: int | None = None
    content: Counter[str] = Counter()
    for statement in (None, *CHANGES):
        if statement:
            orders.change(statement)
            table.refresh()
        new = list(changes(dsn, "kept", seen))
        content = added_up(new, content)
        assert content == content_of(app, "kept")
        if new:
            seen = new[-1].point
            assert new[-1].is_last
            assert [change.is_last for change in new].count(True) == len({change.batch for change in new})
        assert seen == change_point(dsn, "kept")
    assert list(changes(dsn, "kept", seen)) == []
    assert added_up(changes(dsn, "kept")) == content


def test_a_refresh_without_effect_records_nothing(orders, app, kept, database):
    table = kept(GROUPS)
    before = change_point(database.dsn(APP), "kept")
    orders.change("update orders set id = 30 where id = 3")
    table.refresh()
    assert change_point(database.dsn(APP), "kept") == before


def test_changes_are_not_kept_unless_asked_for(orders, app, stream_table, database):
    stream_table(ROWS, name="plain")
    with pytest.raises(ChangesNotKept, match=r"the changes of public\.plain are not kept"):
        changes(database.dsn(APP), "plain")
    assert app.execute("select count(*) from pgtrickle.pgt_feeds").fetchone() == (0,)


def test_a_point_that_is_no_longer_kept_is_an_error(orders, app, admin, kept, database):
    table = kept(ROWS, keep="1h 4 rows")
    dsn = database.dsn(APP)
    first = change_point(dsn, "kept")
    orders.change("insert into orders values (4, 'west', 7)")
    table.refresh()
    second = change_point(dsn, "kept")
    orders.change("insert into orders values (5, 'west', 8), (6, 'west', 9)")
    table.refresh()
    prune(database)
    with pytest.raises(ChangesGone, match=f"after point {first - 1} are no longer kept"):
        changes(dsn, "kept", first - 1)
    # the refresh after this point is the oldest that is kept
    assert [change.row_text for change in changes(dsn, "kept", first)] == [
        "(west,7.00)",
        "(west,8.00)",
        "(west,9.00)",
    ]
    admin.execute("update pgtrickle.pgt_batches set recorded_at = recorded_at - interval '2 h'")
    prune(database)
    with pytest.raises(ChangesGone, match=f"after point {second} are no longer kept"):
        changes(dsn, "kept", second)
    newest = change_point(dsn, "kept")
    assert list(changes(dsn, "kept", newest)) == []
    with pytest.raises(ChangesGone, match=f"{newest + 1} is not a point in the changes of"):
        changes(dsn, "kept", newest + 1)


def test_a_refresh_of_more_rows_than_are_kept_is_a_reset(orders, app, kept, database):
    table = kept(ROWS, keep="1h 3 rows")
    orders.change("insert into orders select n, 'r', n from generate_series(10, 20) n")
    table.refresh()
    orders.change("delete from orders where id = 10")
    table.refresh()
    found = list(changes(database.dsn(APP), "kept"))
    assert [change.change for change in found[-2:]] == [ChangeKind.RESET, ChangeKind.DELETE]
    assert found[-2].reason == "a refresh changed 11 rows, and at most 3 are kept"
    assert (found[-2].data, found[-2].row_text, found[-2].count) == (None, None, 0)


@pytest.mark.parametrize(
    "query",
    [
        "select region, amount, id from orders",
        "select id, region from orders",
        "select region as amount, count(*) as n from orders group by region",
    ],
    ids=["added", "replaced", "other types"],
)
def test_other_columns_reset_the_feed(orders, app, kept, database, query):
    table = kept(ROWS)
    dsn = database.dsn(APP)
    before = change_point(dsn, "kept")
    app.execute("select pgtrickle.alter_stream_table('kept', query => %s)", (query,))
    table.refresh()
    (reset,) = changes(dsn, "kept", before)
    assert (reset.change, reset.is_last) == (ChangeKind.RESET, True)
    assert reset.reason == "the columns of the stream table, or the table itself, were replaced"
    content = content_of(app, "kept")
    orders.change("delete from orders where region = 'south'")
    table.refresh()
    assert added_up(changes(dsn, "kept", reset.point), content) == content_of(app, "kept")
    with pytest.raises(ChangesGone):
        changes(dsn, "kept", before - 1)


@pytest.mark.diverges
def test_a_repair_resets_the_feed(orders, app, admin, kept, database):
    table = kept(ROWS)
    dsn = database.dsn(APP)
    before = change_point(dsn, "kept")
    admin.execute("alter table kept disable trigger pgtrickle_guard")
    admin.execute("delete from kept where region = 'north'")
    admin.execute("alter table kept enable always trigger pgtrickle_guard")
    app.execute("select pgtrickle.repair_stream_table('kept')")
    assert table.refresh().action is Action.REINITIALIZE
    (reset,) = changes(dsn, "kept", before)
    assert (reset.change, reset.reason) == (ChangeKind.RESET, "a repair was requested")


def test_switching_it_off_and_on_begins_a_new_feed(orders, app, admin, kept, database):
    table = kept(ROWS)
    dsn = database.dsn(APP)
    old = change_point(dsn, "kept")
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => 'off')")
    assert admin.execute("select count(*) from pg_class where relname ~ '^kept_changes_'").fetchone() == (0,)
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '7d')")
    content = content_of(app, "kept")
    start = change_point(dsn, "kept")
    assert start > old
    with pytest.raises(ChangesGone):
        changes(dsn, "kept", old)
    orders.change("delete from orders where id = 1")
    table.refresh()
    assert added_up(changes(dsn, "kept", start), content) == content_of(app, "kept")


def test_a_point_of_a_dropped_stream_table_is_not_one_of_its_successor(orders, app, kept, database):
    kept(ROWS)
    old = change_point(database.dsn(APP), "kept")
    app.execute("select pgtrickle.drop_stream_table('kept')")
    left = app.execute("select count(*) from pg_class where relname ~ '^kept_changes_'").fetchone()
    assert left == (0,)
    kept(ROWS)
    with pytest.raises(ChangesGone):
        changes(database.dsn(APP), "kept", old)


def test_lost_state_resets_the_feed(orders, app, admin, kept, database):
    table = kept(GROUPS)
    before = change_point(database.dsn(APP), "kept")
    admin.execute("drop schema pgtrickle_state cascade")
    orders.change("insert into orders values (9, 'west', 1)")
    table.refresh()
    found = list(changes(database.dsn(APP), "kept"))
    assert [change.change for change in found] == [ChangeKind.RESET]
    assert found[0].point > before
    table.equals_its_query()


def test_wrong_values_of_the_option_are_refused(orders, app):
    for value in ("soon", "1d 0 rows", "2 years", "1h rows", "-1h", "0s"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="is not a value of keep_changes"):
            app.execute(
                "select pgtrickle.create_stream_table('t', 'select 1 as x', keep_changes => %s)", (value,)
            )
