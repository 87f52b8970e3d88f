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
        assert "code of others" in str(attack.create("select id from mallory.t")), name
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
        assert "code of others" in str(attack.create(f"select id from mallory.{source}")), source
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
