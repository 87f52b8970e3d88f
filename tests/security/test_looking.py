"""What only looks at a stream table runs no more code of others than a refresh does."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.dependencies import settle
from pgtrickle.catalog.tables import find
from pgtrickle.commands.explain import explain
from pgtrickle.commands.verify import verify
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.postgres.connection import DatabaseError
from tests.security.conftest import MALLORY, SECRET

pytestmark = pytest.mark.every_postgres

ST = "mallory.st"
SHOUT = """
create function mallory.shout(x int) returns boolean immutable language plpgsql as $$
begin
    raise warning 'I am %, and know %', current_user, (select string_agg(word, ' ') from vault.secrets);
    return true;
exception when insufficient_privilege then
    return true;
end $$
"""
"""What is rolled back leaves no row behind, but a warning has reached the client by then."""


def told(connection):
    """What the server tells a client, as it comes."""
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
    return said


@pytest.mark.parametrize(
    "attached",
    [
        f"create index on {ST} ((id + mallory.evil('index')))",
        f"create statistics mallory.trap on (id + mallory.evil('statistics')), (id * 2) from {ST}",
        f"alter table {ST} add constraint trap check (id > -mallory.evil('check')) not valid",
    ],
)
def test_verify_looks_at_what_is_attached_to_the_table(attack, attached):
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    attack.run(attached, "analyze mallory.st", "delete from mallory.log")
    with pytest.raises((PgTrickleError, DatabaseError), match="code of another role"):
        verify(attack.engine, ST)
    assert attack.succeeded() == []


def test_verify_shows_no_rows_that_the_owner_may_no_longer_read(attack):
    attack.admin.execute(
        "create schema shop; create table shop.orders(id int primary key, word text);"
        "insert into shop.orders values (1, 'one'); grant usage on schema shop to public;"
        "grant select, trigger on shop.orders to public"
    )
    assert attack.create("select id, word from shop.orders") is None
    assert attack.refresh() is None
    attack.admin.execute("revoke select on shop.orders from public")
    attack.admin.execute("grant select on shop.orders to trickle")
    attack.admin.execute("insert into shop.orders values (2, %s)", (SECRET,))
    with pytest.raises((PgTrickleError, DatabaseError), match=f"{MALLORY} may not select"):
        verify(attack.engine, ST)
    assert attack.succeeded() == []


@pytest.fixture
def with_constants(attack):
    """A stream table with constants that pass through a domain when its query is parsed."""
    assert not attack.run(
        SHOUT,
        'create domain mallory."h ::a" as int',
        'create type mallory.pair as (a mallory."h ::a", b text)',
    )
    query = """select id, '(1,x)'::mallory.pair as p, '{1}'::mallory."h ::a"[] as q from mallory.t"""
    assert attack.create(query) is None
    return attack


TRAP = 'alter domain mallory."h ::a" add check (mallory.shout(value)) not valid'


def test_repair_does_not_parse_what_would_run_code(with_constants):
    attack = with_constants
    assert attack.run(TRAP) == []
    said = told(attack.mallory)
    assert "mallory.shout" in str(attack.run("select pgtrickle.repair_stream_table('mallory.st')"))
    attack.admin.execute("set role trickle")
    said += told(attack.admin)
    attack.admin.execute("update pgtrickle.pgt_stream_tables set status = 'ERROR'")
    attack.admin.execute("select * from pgtrickle.repair()")
    assert said == []


def settled(engine):
    """Compare what the stream table relies on, as a sidecar does once a second."""
    with engine.pool.autocommitting() as connection:
        settle(connection, find(connection, ST).id, waits=False)


@pytest.mark.parametrize("look", [settled, lambda engine: explain(engine, ST)], ids=["settle", "explain"])
def test_the_ground_is_compared_without_parsing_what_would_run_code(with_constants, look):
    attack = with_constants
    assert attack.refresh() is None
    assert attack.run(TRAP) == []
    attack.engine.forget(*range(10))
    with attack.engine.connection() as connection:
        said = told(connection)
    with pytest.raises(PgTrickleError, match=r"mallory\.shout"):
        look(attack.engine)
    assert said == []
    attack.run('alter domain mallory."h ::a" drop constraint "h ::a_check"')
    assert attack.refresh() is None
