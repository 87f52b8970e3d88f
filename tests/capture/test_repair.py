"""Triggers that are missing are found and made again."""

from __future__ import annotations

import pytest

from pgtrickle.capture.repair import missing_triggers, repair
from pgtrickle.catalog.dependencies import changes_under
from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import StreamTableId
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres

ONE = StreamTableId(1)


def test_a_partition_that_came_later_is_noticed_and_repaired(source, follow, connection):
    events = source("events(id int, day int) partition by range (day)")
    reader = follow("events")
    events.change(
        "create table events_1 partition of events for values from (0) to (10)",
        "grant select, trigger on events_1 to trickle",
    )
    assert [change.what for change in changes_under(connection, ONE)] == [
        "the partitions or children of public.events have changed"
    ]
    assert {m.table for m in missing_triggers(connection)} == {"public.events_1"}
    connection.commit()
    repair(connection, reader.relid)
    assert missing_triggers(connection) == ()
    connection.commit()
    events.change("insert into events_1 values (1, 1)")
    assert reader.changes() == {"(1,1)": 1}


def test_a_trigger_switched_off_is_noticed_and_repaired(source, follow, connection):
    orders = source("orders(id int)")
    reader = follow("orders")
    orders.change("alter table orders disable trigger all")
    assert all(m.is_disabled for m in missing_triggers(connection))
    assert len(missing_triggers(connection)) == 4
    connection.commit()
    repair(connection, reader.relid)
    assert missing_triggers(connection) == ()
    connection.commit()
    orders.change("insert into orders values (1)")
    assert reader.changes() == {"(1)": 1}


def test_repairing_a_busy_table_says_so(source, follow, connection, connect):
    orders = source("orders(id int)")
    reader = follow("orders")
    orders.change("alter table orders disable trigger all")
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    with pytest.raises(Busy):
        repair(connection, reader.relid)
