"""A stream table shows its owner what the owner may read now. Trusted is who may act as the sidecar."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.model.errors import SourceChanged
from tests.fixtures.databases import APP, TRICKLE
from tests.security.conftest import MALLORY

pytestmark = pytest.mark.every_postgres


@pytest.fixture
def orders(attack):
    """A table of somebody else's, which the attacker may read for now."""
    attack.admin.execute(
        "create schema shop; create table shop.orders(id int primary key, amount int);"
        "insert into shop.orders values (1, 10);"
        f"grant usage on schema shop to {TRICKLE}, {MALLORY}, {APP};"
        f"grant select, trigger on shop.orders to {TRICKLE}; grant select on shop.orders to {MALLORY}"
    )
    return attack


def grown(attack):
    """Rows of the stream table after one more order and a refresh, and the error."""
    attack.admin.execute("insert into shop.orders select max(id) + 1, 20 from shop.orders")
    error = attack.refresh()
    rows = attack.mallory.execute("select count(*) from mallory.st").fetchone()
    return rows[0], error


REVOKED = {
    "the table": (
        "select id, amount from shop.orders",
        f"revoke select on shop.orders from {MALLORY}",
        f"grant select on shop.orders to {MALLORY}",
    ),
    "a column": (
        "select id, amount from shop.orders",
        f"revoke select on shop.orders from {MALLORY}; grant select (id) on shop.orders to {MALLORY}",
        f"grant select on shop.orders to {MALLORY}",
    ),
    "the schema": (
        "select id, amount from shop.orders",
        f"revoke usage on schema shop from {MALLORY}",
        f"grant usage on schema shop to {MALLORY}",
    ),
    "the view": (
        "select id from shop.seen",
        f"revoke select on shop.seen from {MALLORY}",
        f"grant select on shop.seen to {MALLORY}",
    ),
    "the owner of the view": (
        "select id from shop.seen",
        f"revoke select on shop.orders from {APP}",
        f"grant select on shop.orders to {APP}",
    ),
    "a function": (
        "select public.twice(amount) as id from shop.orders",
        "revoke execute on function public.twice from public;"
        f"grant execute on function public.twice to {TRICKLE}",
        "grant execute on function public.twice to public",
    ),
}


def test_after_a_revoke_no_new_rows_arrive_until_the_right_is_back(orders):
    orders.admin.execute(
        f"grant create on schema shop to {APP}; grant select on shop.orders to {APP};"
        "create function public.twice(int) returns int immutable language sql as 'select $1 * 2'"
    )
    orders.admin.execute(
        f"set role {APP}; create view shop.seen as select id from shop.orders;"
        f"grant select on shop.seen to {MALLORY}, {TRICKLE}; reset role"
    )
    for name, (query, revoke, grant) in REVOKED.items():
        assert orders.create(query) is None, name
        assert orders.refresh() is None, name
        before, _ = grown(orders)
        orders.admin.execute(revoke)
        rows, error = grown(orders)
        assert (rows, "may no" in str(error)) == (before, True), (name, error)
        orders.admin.execute(grant)
        rows, error = grown(orders)
        assert (rows, error) == (before + 2, None), name
        orders.mallory.execute("select pgtrickle.drop_stream_table('mallory.st')")


def test_a_new_owner_needs_the_rights_as_well(orders):
    assert orders.create("select id, amount from shop.orders") is None
    assert orders.refresh() is None
    orders.admin.execute(f"alter table mallory.st owner to {APP}")
    orders.admin.execute("insert into shop.orders values (7, 70)")
    assert APP in str(orders.refresh())


def test_row_security_that_is_switched_on_stops_the_refresh(orders):
    assert orders.create("select id, amount from shop.orders") is None
    orders.admin.execute("alter table shop.orders enable row level security")
    orders.admin.execute("insert into shop.orders values (7, 70)")
    assert "row-level security" in str(orders.refresh())


def test_a_function_that_changes_hands_is_no_longer_trusted(attack):
    attack.admin.execute(
        "create function public.plain(int) returns int immutable language sql as 'select $1'"
    )
    assert attack.create("select public.plain(id) as id from mallory.t") is None
    assert attack.refresh() is None
    attack.admin.execute(f"alter function public.plain owner to {MALLORY}")
    attack.run(
        "create or replace function public.plain(int) returns int immutable language plpgsql"
        " as $$ begin return mallory.evil($1, 'replaced'); end $$"
    )
    attack.change()
    assert attack.refresh() is not None
    assert attack.succeeded() == []


def test_membership_counts_only_if_it_lets_a_role_act_as_the_sidecar(attack, pg_version):
    trusted = "select pgtrickle_internal.is_trusted((select oid from pg_roles where rolname = %s))"
    is_trusted = lambda role: attack.admin.execute(trusted, (role,)).fetchone()[0]  # noqa: E731
    assert [is_trusted(role) for role in (TRICKLE, "postgres", MALLORY, APP, "nobody")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    # to be a role that the sidecar belongs to is no reason to be trusted
    attack.admin.execute(f"grant {MALLORY} to {TRICKLE}")
    try:
        assert not is_trusted(MALLORY)
        if pg_version >= 16:
            attack.admin.execute(f"revoke {MALLORY} from {TRICKLE}")
            attack.admin.execute(f"grant {TRICKLE} to {MALLORY} with inherit false, set false")
            assert not is_trusted(MALLORY)
            attack.admin.execute(f"grant {TRICKLE} to {MALLORY} with admin true, inherit false, set false")
            assert is_trusted(MALLORY)
    finally:
        attack.admin.execute(f"revoke {MALLORY} from {TRICKLE}; revoke {TRICKLE} from {MALLORY}")


def test_an_application_that_may_act_as_the_sidecar_uses_its_own_functions(attack):
    attack.admin.execute(f"grant {TRICKLE} to {MALLORY}")
    try:
        attack.run("create function mallory.plain(int) returns int immutable language sql as 'select $1'")
        assert attack.create("select mallory.plain(id) as id from mallory.t") is None
        assert attack.refresh() is None
    finally:
        attack.admin.execute(f"revoke {TRICKLE} from {MALLORY}")
    attack.change()
    assert attack.refresh() is not None


def test_an_overload_that_fits_better_is_not_called(attack):
    attack.admin.execute(
        "create function public.plain(text) returns text immutable language sql as 'select $1'"
    )
    attack.run(
        "create table mallory.v(id int, w varchar)", f"grant select, trigger on mallory.v to {TRICKLE}"
    )
    assert attack.create("select public.plain(w) as w from mallory.v") is None
    assert attack.refresh() is None
    attack.run(
        "create function public.plain(varchar) returns text immutable language plpgsql"
        " as $$ begin return mallory.evil('overload'); end $$",
        "insert into mallory.v values (1, 'x')",
    )
    assert attack.refresh() is not None
    assert attack.succeeded() == []


def test_a_security_barrier_is_left_to_postgresql(attack):
    """An error can quote a value, so no expression may meet a row that the view hides."""
    attack.admin.execute(
        "create view vault.others with (security_barrier) as select id, word from vault.secrets where id > 1;"
        f"grant usage on schema vault to {MALLORY}; grant select on vault.others to {MALLORY}"
    )
    query = "select word::int as word from vault.others where word::int > 0"
    assert "may not read view vault.others" in str(attack.create(query))
    attack.admin.execute(f"grant select on vault.others to {TRICKLE}")
    attack.mallory.execute(
        "select pgtrickle.create_stream_table('mallory.st', %s, schedule => null)", (query,)
    )
    assert attack.refresh() is None
    assert attack.succeeded() == []
    (reason,) = attack.mallory.execute(
        "select downgrade_reason from pgtrickle.explain_refresh_mode('mallory.st')"
    ).fetchone()
    assert reason == "view vault.others, a security barrier, cannot be followed incrementally"


def test_a_table_with_the_name_of_a_stream_table_is_not_written(attack):
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    with attack.engine.connection() as connection:
        table = find(connection, "mallory.st")
        attack.run(
            "alter table mallory.st rename to hidden",
            "create table mallory.st(id int, word text)",
            "create trigger trap after insert on mallory.st for each row execute function mallory.spring()",
            f"grant all on mallory.st to {TRICKLE}",
        )
        with pytest.raises(SourceChanged, match="another table has its name"):
            lock_for_apply(connection, table)
        connection.rollback()
    attack.change()
    attack.refresh("mallory.hidden")
    assert attack.succeeded() == []


def test_a_view_that_is_replaced_is_analysed_again(attack):
    attack.run("create view mallory.below as select id, word from mallory.t")
    assert attack.create("select id from mallory.below") is None
    attack.run(
        "create or replace view mallory.below as select mallory.evil(id, 'view') as id, word from mallory.t"
    )
    assert attack.refresh() is not None
    assert attack.succeeded() == []


def test_a_member_who_may_not_act_as_the_sidecar_does_not_drain_or_write(attack, pg_version):
    if pg_version < 16:
        pytest.skip("every member may act as the role there")
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    attack.admin.execute(f"grant {TRICKLE} to {MALLORY} with inherit false, set false")
    try:
        assert attack.run("select pgtrickle.drain(0)")
        assert attack.run("insert into pgtrickle_internal.own_drain (is_draining) values (true)")
        assert attack.run("set pgtrickle.applying = on; delete from mallory.st")
        assert attack.run("select * from pgtrickle.repair()")
    finally:
        attack.admin.execute(f"revoke {TRICKLE} from {MALLORY}")
    assert attack.admin.execute("select count(*) from pgtrickle.pgt_drain").fetchone() == (0,)


@pytest.mark.parametrize("spelled", ["true", "tru", "ON", "1", "yes"])
def test_a_view_that_reads_as_its_reader_does_so_however_it_is_spelled(orders, spelled):
    orders.admin.execute(
        f"create view shop.seen with (security_invoker = {spelled}) as select id from shop.orders;"
        f"grant select on shop.seen to {MALLORY}, {TRICKLE}"
    )
    assert orders.create("select id from shop.seen") is None
    assert orders.refresh() is None
    orders.admin.execute(f"revoke select on shop.orders from {MALLORY}")
    rows, error = grown(orders)
    assert (rows, "may no" in str(error)) == (1, True), error
