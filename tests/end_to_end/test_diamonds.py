"""A table over both arms of a diamond never shows two versions of their common source."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.commands.refresh import refresh
from pgtrickle.model.errors import CommandRefused, PgTrickleError
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import TRICKLE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)",
        rows=[(1, 1, 10), (2, 1, 5), (3, 2, 7)],
    )


@pytest.fixture
def diamond(orders, stream_table, app):
    """Two arms over one table, and a table over both; amounts of 1000 break the left arm."""
    left = stream_table("select customer, sum(amount) as total from orders group by customer", name="arm_l")
    right = stream_table("select customer, count(*) as n from orders group by customer", name="arm_r")
    top = stream_table(
        "select l.customer, l.total, r.n from arm_l l join arm_r r using (customer)", name="top"
    )
    app.execute("alter table arm_l add constraint small check (total < 1000)")
    return left, right, top


def frontiers(engine, *tables):
    with engine.connection() as connection:
        return {str(find(connection, table.name).frontier) for table in tables}


def moment(app):
    """What the top shows if it shows the source as it is now."""
    with app.transaction():
        rows = app.execute(
            "select customer, sum(amount), count(*) from orders where customer is not null group by customer"
        ).fetchall()
    return sorted(rows, key=repr)


@pytest.mark.light
def test_a_failing_arm_keeps_the_top_at_one_version_until_it_recovers(orders, diamond, engine, app, database):
    left, right, top = diamond
    before = moment(app)
    orders.change("insert into orders values (4, 1, 1000)")
    with pytest.raises(PgTrickleError, match="small"):
        refresh(engine, "top")
    assert sorted(top.rows(), key=repr) == before
    # the other arm by itself moves on, and the top does not follow it alone
    refresh(engine, "arm_r")
    right.equals_its_query()
    assert len(frontiers(engine, left, right)) == 2
    with pytest.raises(PgTrickleError, match="small"):
        refresh(engine, "top")
    assert sorted(top.rows(), key=repr) == before
    # a sidecar that knows nothing of it finds the same
    again = Engine(database.dsn(TRICKLE), lambda: engine.spark)
    with pytest.raises(PgTrickleError, match="small"):
        refresh(again, "top")
    assert sorted(top.rows(), key=repr) == before
    orders.change("insert into orders values (5, 2, 1)", "delete from orders where id = 3")
    refresh(engine, "arm_r")
    # suspended by now: the top waits for it, and says so
    with pytest.raises((CommandRefused, PgTrickleError)):
        refresh(again, "top")
    assert sorted(top.rows(), key=repr) == before
    orders.change("update orders set amount = 100 where id = 4")
    app.execute("select pgtrickle.resume_stream_table('arm_l')")
    refresh(again, "arm_l")
    left.equals_its_query()
    assert sorted(top.rows(), key=repr) == before
    assert refresh(again, "top").action is Action.DIFFERENTIAL
    assert len(frontiers(engine, *diamond)) == 1
    for table in diamond:
        table.equals_its_query()
    again._spark = None
    again.close()


def test_the_sidecar_retries_a_failing_arm_alone_and_then_moves_all(orders, diamond, engine, app):
    _, right, top = diamond
    for name in ("arm_l", "arm_r", "top"):
        app.execute("select pgtrickle.alter_stream_table(%s, schedule => 'calculated')", (name,))
    before = moment(app)
    orders.change("insert into orders values (4, 1, 1000)")
    with running(engine) as sidecar:
        eventually(lambda: bool(sidecar.errors()))
        # as if its turn came much later: until then nobody tries it again, nor the top without it
        with engine.connection() as connection:
            connection.execute(
                "update pgtrickle.pgt_stream_tables set retry_at = now() + interval '1 hour'"
                " where retry_at is not null"
            )
            connection.commit()
        sidecar.looks_again(5)
        failures = len(sidecar.errors())
        sidecar.looks_again(10)
        assert sorted(top.rows(), key=repr) == before
        assert len(sidecar.errors()) == failures
        right.equals_its_query()
        orders.change("update orders set amount = 100 where id = 4")
        app.execute("select pgtrickle.resume_stream_table('arm_l')")
        eventually(lambda: sorted(top.rows(), key=repr) != before)
    assert len(frontiers(engine, *diamond)) == 1
    for table in diamond:
        table.equals_its_query()


def test_with_none_the_top_waits_for_nobody(orders, diamond, engine, app):
    _, _, top = diamond
    app.execute("select pgtrickle.alter_stream_table('top', diamond_consistency => 'none')")
    orders.change("insert into orders values (4, 1, 1000)")
    refresh(engine, "arm_r")
    assert refresh(engine, "top").action is Action.DIFFERENTIAL
    # two versions of the source, and yet its query over the arms as they are
    assert_same_bag(app, "select * from top", top.query)
    assert (1, 15, 3) in top.rows()
    app.execute("select pgtrickle.alter_stream_table('top', diamond_consistency => 'atomic')")
    with pytest.raises(PgTrickleError, match="small"):
        refresh(engine, "top")
    orders.change("update orders set amount = 100 where id = 4")
    refresh(engine, "top")
    for table in diamond:
        table.equals_its_query()
