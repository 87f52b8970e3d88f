"""Reading a source of the attacker's runs none of its code, though PostgreSQL evaluates some to plan."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import TRICKLE

pytestmark = pytest.mark.every_postgres

ATTACHED = {
    "a constant in an index expression": "create index trap on mallory.t ((id + mallory.evil('index')))",
    "a constant in an index predicate": (
        "create index trap on mallory.t (id) where id > mallory.evil('predicate')"
    ),
    "a SQL function that is written out": "create index trap on mallory.t (mallory.inlined(id))",
    "a default argument": "create index trap on mallory.t (mallory.with_default(id))",
    "extended statistics": (
        "create statistics mallory.trap on (id + mallory.evil('statistics')), (id * 2) from mallory.t"
    ),
    "a CHECK constraint": "alter table mallory.t add constraint trap check (id > -mallory.evil('check'))",
    "a cast of a constant to a domain": "create index trap on mallory.t ((id + 1::mallory.trap))",
}
DETACHED = (
    "drop index if exists mallory.trap",
    "drop statistics if exists mallory.trap",
    "alter table mallory.t drop constraint if exists trap",
)
FUNCTIONS = (
    "create function mallory.inlined(x int) returns int immutable language sql"
    " as $$ select x + mallory.evil('inlined') $$",
    "create function mallory.with_default(x int, y int default mallory.evil('default')) returns int"
    " immutable language plpgsql as 'begin return x; end'",
)


def test_what_runs_while_a_query_is_planned_is_refused_at_creation(attack):
    attack.run(*FUNCTIONS)
    for name, statement in ATTACHED.items():
        assert attack.run(statement) == [], name
        assert "code of another role" in str(attack.create("select id from mallory.t")), name
        attack.run(*DETACHED)
    assert attack.succeeded() == []


def test_what_is_attached_to_a_source_later_is_refused_by_the_next_refresh(attack):
    attack.run(*FUNCTIONS)
    assert attack.create("select id from mallory.t") is None
    assert attack.refresh() is None
    for name, statement in ATTACHED.items():
        assert attack.run(statement) == [], name
        attack.change()
        assert "rights of the sidecar" in str(attack.refresh()), name
        attack.run(*DETACHED)
    assert attack.refresh() is None
    assert attack.succeeded() == []


def test_an_index_over_columns_alone_is_harmless(attack):
    attack.run("create index on mallory.t (mallory.evil(id, 'column'))")
    assert attack.create("select id from mallory.t") is None
    assert attack.refresh() is None
    assert attack.succeeded() == []


def test_keys_of_partitions_and_constraints_of_children_count(attack):
    attack.run(
        "create table mallory.parts(id int) partition by list ((id + mallory.evil('key')))",
        "create table mallory.part partition of mallory.parts for values in (2, 3)",
        "create table mallory.parent(id int)",
        "create table mallory.child(check (id > -mallory.evil('child'))) inherits (mallory.parent)",
        f"grant select, trigger on all tables in schema mallory to {TRICKLE}",
    )
    for source in ("parts", "part", "parent", "child"):
        assert "code of another role" in str(attack.create(f"select id from mallory.{source}")), source
    assert attack.succeeded() == []


def test_a_materialized_view_is_read_like_any_source(attack):
    attack.run(
        "create materialized view mallory.kept as select id from mallory.t",
        f"grant select on mallory.kept to {TRICKLE}",
    )
    assert attack.create("select id from mallory.kept") is None
    attack.run("create index on mallory.kept ((id + mallory.evil('index')))")
    assert "rights of the sidecar" in str(attack.refresh())
    assert attack.succeeded() == []


def test_capture_runs_nothing_of_a_domain_that_changes_later(attack):
    """Capture writes as the sidecar in the session of the writer, and the writer commits."""
    attack.run(
        "create domain mallory.harmless as int",
        "create table mallory.d(id int, x mallory.harmless)",
        f"grant select, trigger on mallory.d to {TRICKLE}",
    )
    assert attack.create("select id, x from mallory.d") is None
    assert attack.refresh() is None
    attack.run(
        "alter domain mallory.harmless set default mallory.evil('default')",
        "alter domain mallory.harmless add check (mallory.evil_check(value, 'check')) not valid",
        "insert into mallory.d values (1, 2)",
        "update mallory.d set x = 3",
        "delete from mallory.d",
        "truncate mallory.d",
        "alter table mallory.d rename column x to y",
        "insert into mallory.d values (4, 5)",
    )
    attack.refresh()
    assert attack.succeeded() == []


def test_capture_runs_as_nobody_else_whatever_the_session_says(attack):
    """Names in the trigger function are complete: neither search_path nor temporary tables matter."""
    assert attack.create("select id, word from mallory.t") is None
    attack.run(
        "create temporary table touched_0(xid xid8, source oid)",
        "create temporary table pg_inherits(inhrelid oid, inhparent oid)",
        "create function mallory.now() returns timestamptz language plpgsql"
        " as $$ begin perform mallory.note('now'); return pg_catalog.now(); end $$",
        "create function mallory.pg_try_advisory_xact_lock_shared(int, int) returns boolean language plpgsql"
        " as $$ begin return mallory.note('lock') = 1; end $$",
        "set search_path = pg_temp, mallory, pg_catalog",
        "set standard_conforming_strings = off",
        "insert into mallory.t values (7, 'seven', null)",
        "truncate mallory.t",
    )
    assert attack.refresh() is None
    assert attack.succeeded() == []
