"""What the owner of a stream table attaches to it does not run when the sidecar writes to it."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import TRICKLE
from tests.security.conftest import Attack

pytestmark = pytest.mark.every_postgres

ST = "mallory.st"

# each in a list of statements; the last ones undo it
ATTACHED = {
    "a trigger": (
        f"create trigger trap after insert on {ST} for each row execute function mallory.spring()",
        f"drop trigger trap on {ST}",
    ),
    "a trigger's WHEN clause": (
        f"create trigger trap after insert on {ST} for each row"
        " when (mallory.evil_check(new.id, 'when')) execute function pgtrickle.refuse_direct_write()",
        f"drop trigger trap on {ST}",
    ),
    "a trigger that runs as its owner and changes the session": (
        "create function mallory.definer() returns trigger security definer language plpgsql as $$ begin"
        " perform set_config('search_path', 'mallory, pg_catalog', false); return null; end $$;"
        f"create trigger trap after insert on {ST} for each row execute function mallory.definer()",
        f"drop trigger trap on {ST}",
    ),
    "a function in a CHECK": (
        f"alter table {ST} add constraint trap check (mallory.evil_check(id, 'check')) not valid",
        f"alter table {ST} drop constraint trap",
    ),
    "an operator in a CHECK": (
        f"alter table {ST} add constraint trap check (id operator(mallory.===) 1) not valid",
        f"alter table {ST} drop constraint trap",
    ),
    "a cast to a domain in a CHECK": (
        f"alter table {ST} add constraint trap check ((id::mallory.trap) is not null) not valid",
        f"alter table {ST} drop constraint trap",
    ),
    "a function in an index": (
        f"create index trap on {ST} (mallory.evil(id, 'index'))",
        "drop index mallory.trap",
    ),
    "an operator in the predicate of an index": (
        f"create index trap on {ST} (id) where id operator(mallory.===) 1",
        "drop index mallory.trap",
    ),
    "a default": (
        f"alter table {ST} alter column id set default mallory.evil('default')",
        f"alter table {ST} alter column id drop default",
    ),
    "a default with an operator": (
        f"alter table {ST} alter column word set default (1 operator(mallory.===) 1)::text",
        f"alter table {ST} alter column word drop default",
    ),
    "statistics": (
        f"create statistics mallory.trap on (mallory.evil(id, 'statistics')), (id * 2) from {ST}",
        "drop statistics mallory.trap",
    ),
    "a rule": (
        f"create rule trap as on insert to {ST} do also select mallory.evil('rule')",
        f"drop rule trap on {ST}",
    ),
    "a rule that does nothing instead": (
        f"create rule trap as on delete to {ST} do instead nothing",
        f"drop rule trap on {ST}",
    ),
    "a policy": (
        f"create policy trap on {ST} using (mallory.evil_check(id, 'policy')) with check (true);"
        f"create policy all_of_it on {ST} using (true) with check (true);"
        f"alter table {ST} enable row level security",
        f"drop policy trap on {ST}; drop policy all_of_it on {ST};"
        f"alter table {ST} disable row level security",
    ),
    "a child table with a trigger": (
        f"create table mallory.child() inherits ({ST});"
        f"create trigger trap after delete on mallory.child for each row execute function mallory.spring();"
        f"grant all on mallory.child to {TRICKLE}; insert into mallory.child select * from mallory.t",
        "drop table mallory.child",
    ),
    "a partition of the attacker's table": (
        "create table mallory.whole(id int, word text) partition by list ((id + mallory.evil('key')));"
        f"alter table mallory.whole attach partition {ST} default",
        f"alter table mallory.whole detach partition {ST}; drop table mallory.whole",
    ),
    "a parent": (
        f"create table mallory.above(id int, word text); alter table {ST} inherit mallory.above",
        f"alter table {ST} no inherit mallory.above; drop table mallory.above",
    ),
    "an exclusion constraint": (
        f"alter table {ST} add constraint trap exclude (id with =)"
        " where (mallory.evil_check(id, 'exclusion'))",
        f"alter table {ST} drop constraint trap",
    ),
    "a foreign key to a table of the attacker's": (
        "create table mallory.keys(id int primary key);"
        "insert into mallory.keys select generate_series(1, 99);"
        f"alter table {ST} add constraint trap foreign key (id) references mallory.keys",
        f"alter table {ST} drop constraint trap; drop table mallory.keys",
    ),
    "a foreign key that cascades into code of the attacker's": (
        f"alter table {ST} add constraint trap unique (id);"
        f"create table mallory.child(id int references {ST} (id) on delete cascade);"
        "create function mallory.pollute() returns trigger language plpgsql as $$ begin"
        " perform set_config('search_path', 'mallory, pg_catalog', false); return old; end $$;"
        "create trigger trap before delete on mallory.child for each row execute function mallory.pollute();"
        "insert into mallory.child values (1); delete from mallory.t where id = 1",
        f"drop table mallory.child; alter table {ST} drop constraint trap",
    ),
}


@pytest.fixture
def written(attack: Attack) -> Attack:
    """A stream table of the attacker's, loaded."""
    assert attack.create("select id, word from mallory.t") is None
    assert attack.refresh() is None
    return attack


def test_nothing_attached_to_a_stream_table_runs_as_the_sidecar(written):
    got_through = []
    for name, (attach, detach) in ATTACHED.items():
        refusals = written.run(attach)
        written.change()
        if not refusals and written.refresh() is None:
            got_through.append(name)
        written.run(detach)
    assert written.succeeded() == []
    assert got_through == []
    assert written.refresh() is None


def test_code_of_a_trusted_owner_may_be_attached(written):
    written.admin.execute(
        "create table public.told(id int);"
        f"grant insert on public.told to {TRICKLE};"
        "create function public.tell() returns trigger language plpgsql"
        " as $$ begin insert into public.told values (new.id); return null; end $$"
    )
    written.run(f"create trigger tell after insert on {ST} for each row execute function public.tell()")
    written.change()
    assert written.refresh() is None
    assert written.admin.execute("select count(*) from public.told").fetchone() == (1,)


def test_a_domain_that_gets_a_constraint_later_is_refused(attack):
    attack.run("create domain mallory.harmless as int")
    assert attack.create("select id::mallory.harmless as id from mallory.t") is None
    assert attack.refresh() is None
    attack.run("alter domain mallory.harmless add check (mallory.evil_check(value, 'later')) not valid")
    attack.change()
    assert attack.refresh() is not None
    assert attack.succeeded() == []
