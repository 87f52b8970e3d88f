"""Nobody keeps the stream tables of others from being refreshed by what they do to their own."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually
from tests.security.conftest import MALLORY

pytestmark = pytest.mark.every_postgres

LIMIT = 150.0
"""A worker waits five seconds for a lock; the attacker may keep all of them waiting, again and again."""


@pytest.fixture
def victim(attack, database):
    """A stream table of somebody else's, over a source that the attacker may read."""
    attack.admin.execute(
        "create schema shop; create table shop.orders(id int primary key, amount int);"
        f"grant usage on schema shop to {TRICKLE}, {MALLORY}, {APP}; grant create on schema public to {APP};"
        f"grant select, trigger on shop.orders to {TRICKLE}; grant select on shop.orders to {APP}, {MALLORY}"
    )
    with closing(database.connect(APP, autocommit=True)) as connection:
        connection.execute(
            "select pgtrickle.create_stream_table('public.victim', 'select id, amount from shop.orders',"
            " schedule => '200ms', refresh_mode => 'FULL')"
        )
        yield connection


def followed(attack, number):
    """Wait until a new order is in the stream table of the victim."""
    attack.admin.execute("insert into shop.orders values (%s, 1)", (number,))
    arrived = "select count(*) from public.victim where id = %s"
    eventually(lambda: attack.admin.execute(arrived, (number,)).fetchone() == (1,), seconds=LIMIT)


def create_many(attack, query):
    for number in range(6):
        attack.mallory.execute(
            "select pgtrickle.create_stream_table(%s, %s, schedule => '100ms', refresh_mode => 'FULL')",
            (f"mallory.s{number}", query),
        )


@pytest.mark.slow
def test_a_source_that_its_owner_has_locked_holds_up_nobody_else(attack, victim, database):
    """Over a view, so that compiling the query needs the lock too."""
    attack.run(
        "create view mallory.v as select id, word from mallory.t",
        f"grant select on mallory.v to {TRICKLE}",
    )
    create_many(attack, "select v.id, v.word, o.id as number from mallory.v v cross join shop.orders o")
    with running(attack.engine) as sidecar, closing(database.connect(MALLORY)) as other:
        other.execute("lock table mallory.t in access exclusive mode")
        for number in range(2, 5):
            followed(attack, number)
        other.rollback()
        # to wait is no failure: nothing was wrong with the table
        eventually(lambda: sidecar.has_refreshed("s0"))
        assert sidecar.errors() == []


def test_a_query_that_takes_for_ever_holds_up_no_other_table_over_its_sources(attack, victim):
    query = "select count(*) as c from shop.orders, mallory.t, generate_series(1, mallory.t.word::bigint) g"
    attack.run("update mallory.t set word = '1'")
    attack.mallory.execute(
        "select pgtrickle.create_stream_table('mallory.st', %s, schedule => '100ms', refresh_mode => 'FULL',"
        " refresh_timeout => 'none')",
        (query,),
    )
    with running(attack.engine) as sidecar:
        eventually(lambda: sidecar.has_refreshed("st"))
        followed(attack, 2)
    # both are due at once, and neither was slow before
    attack.run("update mallory.t set word = '100000000000000'")
    attack.admin.execute("insert into shop.orders values (3, 1)")
    with running(attack.engine):
        running_query = (
            "select count(*) from pg_stat_activity where usename = %s and state = 'active'"
            " and query ~ 'generate_series' and pid <> pg_backend_pid()"
        )
        eventually(lambda: attack.admin.execute(running_query, (TRICKLE,)).fetchone() == (1,))
        try:
            for number in range(4, 6):
                followed(attack, number)
        finally:
            # the next attempt ends
            attack.run("update mallory.t set word = '1'")
            attack.admin.execute(
                "select pg_cancel_backend(pid) from pg_stat_activity where usename = %s"
                " and query ~ 'generate_series'",
                (TRICKLE,),
            )
