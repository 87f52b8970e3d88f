"""Feeds in a copy of a database: nothing is read before it is repaired, and no point of the original fits."""

from __future__ import annotations

import pytest

from pgtrickle.commands.changes import change_point, changes
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.repair import repair
from pgtrickle.model.changes import ChangeKind
from pgtrickle.model.errors import ChangesGone, ChangesNotKept, CopiedDatabase
from pgtrickle.refresh.engine import Engine
from tests.feeds.conftest import added_up, content_of
from tests.feeds.test_changes import GROUPS
from tests.fixtures.databases import APP, TRICKLE, create_database, drop_database
from tests.fixtures.poolers import POOL_SIZE


def test_a_copy_begins_feeds_of_its_own(orders, app, admin, stream_table, database, spark):
    table = stream_table(GROUPS, name="kept", loads=False)
    app.execute("select pgtrickle.alter_stream_table('kept', keep_changes => '1d')")
    table.refresh()
    point = change_point(database.dsn(APP), "kept")
    admin.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    admin.close()
    copy = create_database(database.server, f"{database.name}_copy", database.name)
    dsn = copy.dsn(APP)
    other = Engine(copy.dsn(TRICKLE), lambda: spark, max_connections=POOL_SIZE)
    try:
        with pytest.raises(CopiedDatabase):
            changes(dsn, "kept", point)
        repair(copy.dsn(TRICKLE))
        with pytest.raises(ChangesNotKept):
            changes(dsn, "kept", point)
        refresh(other, "kept")
        with pytest.raises(ChangesGone):
            changes(dsn, "kept", point)
        (reset,) = changes(dsn, "kept")
        assert reset.change is ChangeKind.RESET
        # beyond anything that the original gives out meanwhile
        assert reset.point > point + 10**12
        with copy.connect(APP, autocommit=True) as writer:
            content = content_of(writer, "kept")
            writer.execute("delete from orders where id = 1")
            refresh(other, "kept")
            assert added_up(changes(dsn, "kept", reset.point), content) == content_of(writer, "kept")
    finally:
        other._spark = None
        other.close()
        drop_database(copy)
