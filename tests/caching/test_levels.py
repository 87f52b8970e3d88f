"""What one sidecar has compiled, no other compiles again, unless something that matters is different."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pgtrickle.catalog.compiled import prune_compiled
from pgtrickle.plan.limits import QueryLimits
from pgtrickle.refresh import compilation
from pgtrickle.refresh.caching import compilations
from pgtrickle.refresh.engine import Engine
from tests.caching.conftest import compiled_by, counted
from tests.fixtures.databases import TRICKLE

LEVELS = ("host_hits", "catalog_hits", "compiles")
JOIN = "select o.id, c.name, o.amount from orders o join customers c on c.id = o.customer"
SUMS = "select customer, sum(amount) as total, max(amount) as most from orders group by customer"

IN_ANOTHER_PROCESS = """
import sys
from pgtrickle.catalog.tables import find
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.prepare import prepare
engine = Engine(sys.argv[1], lambda: None)
with engine.connection() as connection:
    table = find(connection, sys.argv[2])
prepare(engine, table.id)
print(engine.cache_counters()["compiles"], engine.cache_counters()["catalog_hits"])
"""


@pytest.fixture
def shop(source):
    source("customers(id int primary key, name text)", rows=[(1, "Ann"), (2, "Bob")])
    return source("orders(id int primary key, customer int, amount int)", rows=[(1, 1, 10), (2, 2, 5)])


@pytest.fixture
def nothing_is_compiled(monkeypatch) -> None:
    """Whoever parses a query, or asks PostgreSQL to print one, fails the test."""

    def refuse(*_: object) -> None:
        raise AssertionError("this query was compiled before")

    for name in ("canonical", "compile_query", "regenerate", "expression_types"):
        monkeypatch.setattr(compilation, name, refuse)
    monkeypatch.setattr("sqlglot.parser.Parser.parse", refuse)
    monkeypatch.setattr("sqlglot.tokens.Tokenizer.tokenize", refuse)


def test_a_second_sidecar_compiles_nothing(shop, defined, sidecar):
    for query in (JOIN, SUMS, "select distinct on (customer) * from orders order by customer, id limit 3"):
        name = defined(query)
        first, second = sidecar(), sidecar()
        one, two = compiled_by(first, name), compiled_by(second, name)
        assert (counted(first, *LEVELS), counted(second, *LEVELS)) == ((0, 0, 1), (0, 1, 0))
        assert (one.outputs, one.sources, one.reason) == (two.outputs, two.sources, two.reason)
        assert one.compiled is not None
        assert two.compiled is not None
        assert one.compiled.initial() == two.compiled.initial()
        for changed in ({source.relation} for source in one.sources):
            assert one.compiled.program(frozenset(changed)) == two.compiled.program(frozenset(changed))


def test_the_first_refresh_of_a_known_table_compiles_nothing(
    shop, stream_table, sidecar, spark, request, app
):
    tables = [stream_table(JOIN), stream_table(SUMS)]
    second = sidecar(spark)
    request.getfixturevalue("nothing_is_compiled")
    shop.change("insert into orders values (3, 1, 7)", "delete from orders where id = 2")
    for table in tables:
        again = type(table)(table.name, table.query, second, app)
        assert again.refresh().action.value == "DIFFERENTIAL"
        again.equals_its_query()
    assert counted(second, *LEVELS) == (0, 2, 0)


def test_another_process_compiles_nothing(shop, defined, sidecar, database):
    name = defined(JOIN)
    compiled_by(sidecar(), name)
    said = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, database.dsn(TRICKLE), name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["0", "1"], said.stderr


def test_a_query_that_is_only_full_is_shared_with_its_reason(shop, defined, sidecar):
    name = defined(JOIN, "FULL")
    first, second = compiled_by(sidecar(), name), compiled_by(sidecar(), name)
    assert first.compiled is None
    assert second.compiled is None
    assert first.reason == second.reason == "FULL was asked for"


def test_the_host_has_it_where_the_catalog_does_not(shop, defined, sidecar, tmp_path, connection):
    name = defined(JOIN)
    compiled_by(sidecar(cache_directory=tmp_path / "plans"), name)
    connection.execute("delete from pgtrickle.pgt_compiled")
    connection.commit()
    second = sidecar(cache_directory=tmp_path / "plans")
    compiled_by(second, name)
    assert counted(second, *LEVELS) == (1, 0, 0)


def test_the_host_takes_over_what_the_catalog_has(shop, defined, sidecar, tmp_path):
    name = defined(JOIN)
    compiled_by(sidecar(), name)
    second, third = (sidecar(cache_directory=tmp_path / "plans") for _ in range(2))
    compiled_by(second, name)
    compiled_by(third, name)
    assert (counted(second, *LEVELS), counted(third, *LEVELS)) == ((0, 1, 0), (1, 0, 0))


def test_damaged_bytes_are_compiled_again_and_mended(shop, defined, sidecar, connection, tmp_path):
    name = defined(JOIN)
    compiled_by(sidecar(cache_directory=tmp_path / "plans"), name)
    for path in (tmp_path / "plans").glob("*/*"):
        path.write_bytes(path.read_bytes()[:-20])
    connection.execute("update pgtrickle.pgt_compiled set payload = set_byte(payload, 60, 0)")
    connection.commit()
    second, third = (sidecar(cache_directory=tmp_path / "plans") for _ in range(2))
    compiled_by(second, name)
    compiled_by(third, name)
    assert (counted(second, *LEVELS), counted(third, *LEVELS)) == ((0, 0, 1), (1, 0, 0))


def test_code_of_another_version_compiles_for_itself(shop, defined, sidecar, connection, monkeypatch):
    name = defined(JOIN)
    compiled_by(sidecar(), name)
    monkeypatch.setattr(compilations, "code_version", lambda: "another")
    other = sidecar()
    compiled_by(other, name)
    assert counted(other, *LEVELS) == (0, 0, 1)
    assert connection.execute("select count(*) from pgtrickle.pgt_compiled").fetchone() == (2,)
    assert prune_compiled(connection, "another") == 0
    connection.execute("update pgtrickle.pgt_compiled set compiled_at = now() - interval '8 days'")
    assert prune_compiled(connection, "another") == 1


@pytest.mark.parametrize(
    "change",
    [
        "create index on orders (customer)",
        "alter table customers alter name set not null",
        "alter table orders add unique (customer, id)",
        "alter table orders alter customer type bigint",
        "select pgtrickle.alter_stream_table('stream_1', refresh_mode => 'FULL')",
        "create aggregate name(int) (sfunc = int4pl, stype = int)",
    ],
)
def test_whatever_the_compiler_looks_at_is_part_of_the_key(change, shop, defined, sidecar, app):
    name = defined(JOIN)
    compiled_by(sidecar(), name)
    app.execute(change)
    second, third = sidecar(), sidecar()
    compiled_by(second, name)
    compiled_by(third, name)
    assert (counted(second, *LEVELS), counted(third, *LEVELS)) == ((0, 0, 1), (0, 1, 0))


def test_a_larger_limit_lets_a_refused_query_be_followed(shop, defined, sidecar, tmp_path):
    name = defined(JOIN)
    few = sidecar(cache_directory=tmp_path / "plans", query_limits=QueryLimits(max_relations=1))
    refused = compiled_by(few, name)
    assert (refused.compiled, "MAX_RELATIONS = 1" in refused.reason) == (None, True)
    usual = sidecar(cache_directory=tmp_path / "plans")
    assert compiled_by(usual, name).compiled is not None
    assert counted(usual, *LEVELS) == (0, 0, 1)


def test_altering_and_dropping_remove_what_was_compiled(shop, defined, sidecar, app, connection):
    first, second = defined(JOIN), defined(SUMS)
    engine = sidecar()
    for name in (first, second):
        compiled_by(engine, name)
    other = "select id, name, id as amount from customers"
    app.execute(f"select pgtrickle.alter_stream_table('{first}', query => '{other}')")
    assert connection.execute("select count(*) from pgtrickle.pgt_compiled").fetchone() == (1,)
    connection.commit()
    assert {source.name.name for source in compiled_by(engine, first).sources} == {"customers"}
    app.execute(f"select pgtrickle.drop_stream_table('{second}')")
    assert connection.execute("select count(*) from pgtrickle.pgt_compiled").fetchone() == (1,)


def test_a_process_keeps_only_so_many(shop, defined, sidecar):
    names = [defined(f"select id + {number} as n from orders") for number in range(3)]
    engine = sidecar(max_entries=2)
    for name in (*names, names[2], names[0]):
        compiled_by(engine, name)
    counts = counted(engine, "hits", "misses", "compiles", "catalog_hits", "evictions", "entries")
    assert counts == (1, 4, 3, 1, 2, 2)


def test_a_process_may_keep_nothing(shop, defined, sidecar):
    name = defined(JOIN)
    engine = sidecar(max_entries=0)
    for _ in range(3):
        compiled_by(engine, name)
    assert counted(engine, "hits", "misses", "compiles", "entries") == (0, 3, 1, 0)


def test_the_catalog_tells_which_tables_follow_the_clock(shop, source, defined, sidecar, connection):
    source("events(id int primary key, at timestamptz)")
    names = [defined(JOIN), defined("select id from events where at > now() - interval '1 hour'")]
    engine = sidecar()
    known = "select follows_clock from pgtrickle.pgt_stream_tables order by pgt_id"
    assert connection.execute(known).fetchall() == [(None,), (None,)]
    connection.commit()
    for name in names:
        compiled_by(engine, name)
    assert connection.execute(known).fetchall() == [(False,), (True,)]


def test_an_engine_explains_what_another_compiled(shop, defined, sidecar):
    from pgtrickle.commands.explain import explain

    name = defined(JOIN)
    first: Engine = sidecar()
    compiled_by(first, name)
    assert explain(sidecar(), name) == explain(first, name)
